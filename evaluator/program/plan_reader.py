"""Reads a plan written by a process that ran generated code: every field is checked before it is believed."""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from evaluator.program import library
from evaluator.program.dtypes import FLOAT_DTYPES, ITEM_BYTES, integer_range
from evaluator.program.launch_limits import MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID, MAX_SHARED_BYTES
from evaluator.program.plan import (
    SCHEMA,
    Argument,
    Attention,
    Buffer,
    Convolution,
    Copy,
    Fill,
    FloatArgument,
    IntArgument,
    Launch,
    Matmul,
    Module,
    Plan,
    ScalarArgument,
    Step,
    View,
    overlap,
)

MAX_DIMENSIONS = 32  # of NumPy and CuPy before 2.0 and 14
MAX_TEXT_BYTES = 64 << 20
MAX_SOURCE_CHARACTERS = 1 << 20  # of all modules together; joined strings may exceed the program's own limit
MAX_ELEMENTS = 2**40
MAX_BUFFERS = 65_536 + 4_096  # one per step, and the inputs
MAX_ARGUMENTS = 512
MAX_LINE = 1_000_000
MAX_MODULES = 64  # as in the tracer's recorder, which imports nothing of ours
MAX_STEPS = 65_536

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,199}\Z")
_KERNEL = re.compile(r"[A-Za-z_][\x20-\x7e]{0,499}\Z")
_OPTION = re.compile(r"-[\x20-\x7e]{1,499}\Z")
_FLOAT = re.compile(r"-?(inf|nan|[0-9]{1,330}(\.[0-9]{1,330})?(e[+-]?[0-9]{1,4})?)\Z")
_INTEGER = re.compile(r"-?[0-9]{1,20}\Z")

T = TypeVar("T")


def from_json(text: str | bytes, max_steps: int = MAX_STEPS) -> Plan:
    """The plan in `text`. Raises ValueError that names the field, what was seen and what was expected."""
    return from_record(load_hostile(text), max_steps)


def load_hostile(text: str | bytes) -> Any:
    """JSON whose only numbers are integers. Raises ValueError, whatever the text is."""
    if len(text) > MAX_TEXT_BYTES:
        raise ValueError(f"plan: {len(text)} bytes of JSON; at most {MAX_TEXT_BYTES} are read")
    try:
        return json.loads(text, parse_float=_no_number, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("plan: JSON nested too deeply") from None


def from_record(record: Any, max_steps: int = MAX_STEPS) -> Plan:
    """The plan in parsed JSON; see `from_json`."""
    fields = _object(record, "plan", ("schema", "buffers", "modules", "steps", "outputs"))
    schema = _integer(fields["schema"], "plan.schema", 0, 1_000_000)
    if schema != SCHEMA:
        raise ValueError(f"plan.schema: seen {schema}, this reader knows {SCHEMA}")
    buffers = _sequence(fields["buffers"], "buffers", 0, MAX_BUFFERS, _buffer)
    _check_buffers(buffers)
    modules = _sequence(fields["modules"], "modules", 0, MAX_MODULES, _module)
    if sum(len(module.source) for module in modules) > MAX_SOURCE_CHARACTERS:
        raise ValueError(f"modules: more than {MAX_SOURCE_CHARACTERS} characters of source together")
    steps = _sequence(fields["steps"], "steps", 0, max_steps, lambda value, at: _step(value, at, buffers, modules))
    outputs = _sequence(fields["outputs"], "outputs", 1, 1_024, lambda value, at: _view(value, at, buffers))
    return Plan(buffers=buffers, modules=modules, steps=steps, outputs=outputs)


def _no_number(text: str) -> None:
    raise ValueError(f"plan: the number {text[:40]} must travel as an integer or as text")


def _show(value: object) -> str:
    shown = repr(value) if not isinstance(value, dict | list) else type(value).__name__
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _object(value: Any, at: str, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{at}: seen {_show(value)}, expected an object")
    if set(value) != set(keys):
        raise ValueError(f"{at}: seen keys {_show(sorted(value)[:12])}, expected {sorted(keys)}")
    return value


def _integer(value: Any, at: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{at}: seen {_show(value)}, expected an integer from {low} to {high}")
    return value


def _boolean(value: Any, at: str) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{at}: seen {_show(value)}, expected true or false")
    return value


def _text(value: Any, at: str, pattern: re.Pattern) -> str:
    if not isinstance(value, str) or not pattern.match(value):
        raise ValueError(f"{at}: seen {_show(value)}, expected text matching {pattern.pattern}")
    return value


def _choice(value: Any, at: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{at}: seen {_show(value)}, expected one of {', '.join(choices)}")
    return value


def _sequence(value: Any, at: str, low: int, high: int, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    if not isinstance(value, list) or not low <= len(value) <= high:
        seen = f"{len(value)} entries" if isinstance(value, list) else _show(value)
        raise ValueError(f"{at}: seen {seen}, expected a list of {low} to {high} entries")
    return tuple(read(entry, f"{at}[{i}]") for i, entry in enumerate(value))


def _shape(value: Any, at: str) -> tuple[int, ...]:
    shape = _sequence(value, at, 0, MAX_DIMENSIONS, lambda entry, where: _integer(entry, where, 0, MAX_ELEMENTS))
    if math.prod(shape) > MAX_ELEMENTS:
        raise ValueError(f"{at}: more than {MAX_ELEMENTS} elements")
    return shape


def _number(value: Any, at: str, dtype: str) -> int | float:
    if dtype in FLOAT_DTYPES:
        return float(_text(value, at, _FLOAT))
    number = int(_text(value, at, _INTEGER))
    return _integer(number, at, *integer_range(dtype))


def _buffer(value: Any, at: str) -> Buffer:
    fields = _object(value, at, ("name", "role", "dtype", "shape"))
    return Buffer(
        name=_text(fields["name"], f"{at}.name", _NAME),
        role=_choice(fields["role"], f"{at}.role", ("input", "temporary")),
        dtype=_choice(fields["dtype"], f"{at}.dtype", tuple(ITEM_BYTES)),
        shape=_shape(fields["shape"], f"{at}.shape"),
    )


def _check_buffers(buffers: Sequence[Buffer]) -> None:
    names = [buffer.name for buffer in buffers]
    if len(set(names)) != len(names):
        raise ValueError("buffers: two have the same name")
    roles = [buffer.role for buffer in buffers]
    if "input" in roles[roles.count("input") :]:
        raise ValueError("buffers: an input follows a temporary; inputs come first")


def _module(value: Any, at: str) -> Module:
    fields = _object(value, at, ("source", "options", "kernels"))
    source = fields["source"]
    if not isinstance(source, str) or "\0" in source or not _encodes(source):
        raise ValueError(f"{at}.source: expected text without NUL characters and lone surrogates")
    kernels = _sequence(fields["kernels"], f"{at}.kernels", 0, 4_096, lambda v, where: _text(v, where, _KERNEL))
    if len(set(kernels)) != len(kernels):
        raise ValueError(f"{at}.kernels: a name is listed twice")
    options = _sequence(fields["options"], f"{at}.options", 0, 256, lambda v, where: _text(v, where, _OPTION))
    return Module(source=source, options=options, kernels=kernels)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _view(value: Any, at: str, buffers: Sequence[Buffer]) -> View:
    fields = _object(value, at, ("buffer", "offset", "shape"))
    view = View(
        buffer=_integer(fields["buffer"], f"{at}.buffer", 0, len(buffers) - 1),
        offset=_integer(fields["offset"], f"{at}.offset", 0, MAX_ELEMENTS),
        shape=_shape(fields["shape"], f"{at}.shape"),
    )
    size = buffers[view.buffer].size
    if view.offset + view.size > size:
        raise ValueError(f"{at}: elements {view.offset} to {view.offset + view.size} of a buffer of {size}")
    return view


def _argument(value: Any, at: str, buffers: Sequence[Buffer]) -> Argument:
    if not isinstance(value, dict):
        raise ValueError(f"{at}: seen {_show(value)}, expected an object")
    match sorted(value):
        case ["view"]:
            return _view(value["view"], f"{at}.view", buffers)
        case ["int"]:
            return IntArgument(_integer(value["int"], f"{at}.int", -(2**63), 2**63 - 1))
        case ["float"]:
            return FloatArgument(float(_text(value["float"], f"{at}.float", _FLOAT)))
        case ["scalar", "value"]:
            dtype = _choice(value["scalar"], f"{at}.scalar", tuple(ITEM_BYTES))
            return ScalarArgument(dtype=dtype, value=_number(value["value"], f"{at}.value", dtype))
    raise ValueError(f"{at}: seen keys {_show(sorted(value)[:12])}, expected view, int, float, or scalar and value")


def _extent(value: Any, at: str, highs: tuple[int, int, int]) -> tuple[int, int, int]:
    extent = _sequence(value, at, 3, 3, lambda entry, where: _integer(entry, where, 1, highs[int(where[-2])]))
    return (extent[0], extent[1], extent[2])


def _launch(value: Any, at: str, line: int, buffers: Sequence[Buffer], modules: Sequence[Module]) -> Launch:
    module = _integer(value["module"], f"{at}.module", 0, len(modules) - 1)
    kernel = value["kernel"]
    if not isinstance(kernel, str) or kernel not in modules[module].kernels:
        raise ValueError(f"{at}.kernel: {_show(kernel)} is not a kernel of modules[{module}]")
    block = _extent(value["block"], f"{at}.block", MAX_BLOCK)
    if math.prod(block) > MAX_BLOCK_THREADS:
        raise ValueError(f"{at}.block: {math.prod(block)} threads, at most {MAX_BLOCK_THREADS}")
    return Launch(
        module=module,
        kernel=kernel,
        grid=_extent(value["grid"], f"{at}.grid", MAX_GRID),
        block=block,
        shared_bytes=_integer(value["shared_bytes"], f"{at}.shared_bytes", 0, MAX_SHARED_BYTES),
        arguments=_sequence(
            value["args"], f"{at}.args", 0, MAX_ARGUMENTS, lambda v, where: _argument(v, where, buffers)
        ),
        line=line,
    )


def _fill(value: Any, at: str, line: int, buffers: Sequence[Buffer]) -> Fill:
    view = _view(value["view"], f"{at}.view", buffers)
    return Fill(view=view, value=_number(value["value"], f"{at}.value", buffers[view.buffer].dtype), line=line)


def _copy(value: Any, at: str, line: int, buffers: Sequence[Buffer]) -> Copy:
    source, target = (_view(value[key], f"{at}.{key}", buffers) for key in ("from", "to"))
    if source.shape != target.shape or buffers[source.buffer].dtype != buffers[target.buffer].dtype:
        raise ValueError(f"{at}: the two views of a copy must have one shape and one dtype")
    if overlap(source, target):
        raise ValueError(f"{at}: the two views of a copy overlap")
    return Copy(source=source, target=target, line=line)


def _matmul(value: Any, at: str, line: int, buffers: Sequence[Buffer]) -> Matmul:
    a, b, out = (_view(value[key], f"{at}.{key}", buffers) for key in ("a", "b", "out"))
    turned = [_boolean(value[key], f"{at}.{key}") for key in ("transpose_a", "transpose_b")]
    dtypes = {buffers[view.buffer].dtype for view in (a, b, out)}
    if len(dtypes) != 1 or not dtypes <= FLOAT_DTYPES:
        raise ValueError(f"{at}: seen dtypes {sorted(dtypes)}, expected one float dtype for a, b and out")
    batches = sorted({a.shape[:-2], b.shape[:-2]} - {()})
    fits = len(a.shape) >= 2 and len(b.shape) >= 2 and len(batches) <= 1
    rows, inner = _matrix(a, turned[0]) if fits else (0, 0)
    middle, columns = _matrix(b, turned[1]) if fits else (0, 0)
    if not fits or inner != middle or out.shape != (*(batches[0] if batches else ()), rows, columns):
        raise ValueError(f"{at}: shapes {a.shape} @ {b.shape} = {out.shape} do not fit, transposed {turned}")
    _check_apart(at, out, a, b)
    return Matmul(a=a, b=b, out=out, transpose_a=turned[0], transpose_b=turned[1], line=line)


def _matrix(view: View, transposed: bool) -> tuple[int, int]:
    rows, columns = view.shape[-2:]
    return (columns, rows) if transposed else (rows, columns)


def _convolution(value: Any, at: str, line: int, buffers: Sequence[Buffer]) -> Convolution:
    x, weight, out = _floats(value, at, ("x", "weight", "out"), buffers)
    lengths = {
        name: _sequence(value[name], f"{at}.{name}", 1, 3, lambda v, where: _integer(v, where, 0, library.MAX_LENGTH))
        for name in ("stride", "padding", "dilation", "output_padding")
    }
    groups = _integer(value["groups"], f"{at}.groups", 1, library.MAX_LENGTH)
    transposed = _boolean(value["transposed"], f"{at}.transposed")
    expected = library.conv_shape(x.shape, weight.shape, groups=groups, transposed=transposed, **lengths)
    if out.shape != expected:
        raise ValueError(f"{at}.out: seen shape {out.shape}, expected {expected}")
    _check_apart(at, out, x, weight)
    return Convolution(x=x, weight=weight, out=out, groups=groups, transposed=transposed, line=line, **lengths)


def _attention(value: Any, at: str, line: int, buffers: Sequence[Buffer]) -> Attention:
    query, key, values, out = _floats(value, at, ("query", "key", "value", "out"), buffers)
    expected = library.attention_shape(query.shape, key.shape, values.shape)
    if out.shape != expected:
        raise ValueError(f"{at}.out: seen shape {out.shape}, expected {expected}")
    _check_apart(at, out, query, key, values)
    causal = _boolean(value["causal"], f"{at}.causal")
    return Attention(query=query, key=key, value=values, out=out, causal=causal, line=line)


def _floats(value: Any, at: str, names: Sequence[str], buffers: Sequence[Buffer]) -> list[View]:
    views = [_view(value[name], f"{at}.{name}", buffers) for name in names]
    dtypes = {buffers[view.buffer].dtype for view in views}
    if dtypes != {"float32"}:
        raise ValueError(f"{at}: seen dtypes {sorted(dtypes)}, expected float32")
    return views


def _check_apart(at: str, out: View, *operands: View) -> None:
    if any(overlap(operand, out) for operand in operands):
        raise ValueError(f"{at}: out overlaps an operand")


_STEP_KEYS = {
    "launch": ("op", "module", "kernel", "grid", "block", "shared_bytes", "args", "line"),
    "fill": ("op", "view", "value", "line"),
    "copy": ("op", "from", "to", "line"),
    "matmul": ("op", "a", "b", "out", "transpose_a", "transpose_b", "line"),
    "conv": (
        "op",
        "x",
        "weight",
        "out",
        "stride",
        "padding",
        "dilation",
        "output_padding",
        "groups",
        "transposed",
        "line",
    ),
    "attention": ("op", "query", "key", "value", "out", "causal", "line"),
}


def _step(value: Any, at: str, buffers: Sequence[Buffer], modules: Sequence[Module]) -> Step:
    if not isinstance(value, dict):
        raise ValueError(f"{at}: seen {_show(value)}, expected an object")
    op = _choice(value.get("op"), f"{at}.op", tuple(_STEP_KEYS))
    fields = _object(value, at, _STEP_KEYS[op])
    line = _integer(fields["line"], f"{at}.line", 1, MAX_LINE)
    if op == "launch":
        return _launch(fields, at, line, buffers, modules)
    if op == "fill":
        return _fill(fields, at, line, buffers)
    if op == "copy":
        return _copy(fields, at, line, buffers)
    if op == "conv":
        return _convolution(fields, at, line, buffers)
    if op == "attention":
        return _attention(fields, at, line, buffers)
    return _matmul(fields, at, line, buffers)
