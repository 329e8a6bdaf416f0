"""A plan: what a program does at given shapes, as a static list of steps on buffers. Pure data.

Plans come from `plan_reader.from_json`, which checks every promise written beside the fields below.
"""

import dataclasses
import json
import math

from evaluator.program.dtypes import ITEM_BYTES

SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class Buffer:
    """Device memory of one array, C-contiguous. The inputs come first, in the order of `forward`."""

    name: str  # input: its name among the arguments; temporary: "t<number>"; unique in the plan
    role: str  # "input" or "temporary"; a temporary is uninitialised until a step writes it
    dtype: str  # a key of dtypes.ITEM_BYTES
    shape: tuple[int, ...]  # a dimension may be 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * ITEM_BYTES[self.dtype]


@dataclasses.dataclass(frozen=True)
class View:
    """A contiguous run of elements of one buffer, seen under a shape. Never reaches past the buffer."""

    buffer: int  # index into Plan.buffers
    offset: int  # elements from the buffer's start
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class IntArgument:
    """A bare Python int: eight bytes, so it fits an integer parameter of any width that holds it."""

    value: int  # fits int64


@dataclasses.dataclass(frozen=True)
class FloatArgument:
    """A bare Python float: eight bytes, fits `double` only."""

    value: float


@dataclasses.dataclass(frozen=True)
class ScalarArgument:
    """A typed scalar such as cp.float32(0.5); fits a parameter of exactly this dtype."""

    dtype: str
    value: int | float  # in the dtype's range; not rounded to it


Argument = View | IntArgument | FloatArgument | ScalarArgument


@dataclasses.dataclass(frozen=True)
class Module:
    """One unit of CUDA C++ source, compiled once."""

    source: str
    options: tuple[str, ...]  # NVRTC spelling
    kernels: tuple[str, ...]  # the kernels that steps launch: a name, or a template's name expression


@dataclasses.dataclass(frozen=True)
class Launch:
    module: int  # index into Plan.modules
    kernel: str  # one of that module's kernels
    grid: tuple[int, int, int]  # within launch_limits.MAX_GRID, none 0
    block: tuple[int, int, int]  # within launch_limits.MAX_BLOCK and MAX_BLOCK_THREADS, none 0
    shared_bytes: int  # dynamic shared memory
    arguments: tuple[Argument, ...]
    line: int  # of the program file


@dataclasses.dataclass(frozen=True)
class Fill:
    view: View
    value: int | float  # int for integer and bool buffers, float for the others
    line: int


@dataclasses.dataclass(frozen=True)
class Copy:
    source: View
    target: View  # same dtype and shape; the two never overlap
    line: int


@dataclasses.dataclass(frozen=True)
class Matmul:
    """out[*, m, n] = a[*, m, k] @ b[*, k, n]; both batches equal or one of them empty; one float dtype throughout.

    `transpose_a`: a is [*, k, m] in memory; `transpose_b`: b is [*, n, k].
    """

    a: View
    b: View
    out: View  # overlaps neither a nor b
    transpose_a: bool
    transpose_b: bool
    line: int


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A convolution of float32, plain or transposed; `library.conv_shape` says how the shapes go together."""

    x: View
    weight: View
    out: View  # overlaps neither operand
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int
    transposed: bool
    line: int


@dataclasses.dataclass(frozen=True)
class Attention:
    """out = softmax(query key^T / sqrt(d)) value over the last two dimensions, in float32."""

    query: View
    key: View
    value: View
    out: View  # overlaps no operand
    causal: bool  # a token sees those up to its own place
    line: int


LibraryStep = Matmul | Convolution | Attention
Step = Launch | Fill | Copy | LibraryStep


@dataclasses.dataclass(frozen=True)
class Plan:
    buffers: tuple[Buffer, ...]
    modules: tuple[Module, ...]
    steps: tuple[Step, ...]
    outputs: tuple[View, ...]  # at least one; may be a view of an input, which the reader then copies

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        return tuple(buffer for buffer in self.buffers if buffer.role == "input")

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers together; a plan frees nothing."""
        return sum(buffer.nbytes for buffer in self.buffers)

    def dtype(self, view: View) -> str:
        return self.buffers[view.buffer].dtype


def overlap(a: View, b: View) -> bool:
    """Whether two views share an element."""
    if a.buffer != b.buffer or a.size == 0 or b.size == 0:
        return False
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size


def _view_json(view: View) -> dict:
    return {"buffer": view.buffer, "offset": view.offset, "shape": list(view.shape)}


def _argument_json(argument: Argument) -> dict:
    match argument:
        case View():
            return {"view": _view_json(argument)}
        case IntArgument():
            return {"int": argument.value}
        case FloatArgument():
            return {"float": repr(argument.value)}
        case ScalarArgument():
            return {"scalar": argument.dtype, "value": repr(argument.value)}


def _step_json(step: Step) -> dict:
    match step:
        case Launch():
            return {
                "op": "launch",
                "module": step.module,
                "kernel": step.kernel,
                "grid": list(step.grid),
                "block": list(step.block),
                "shared_bytes": step.shared_bytes,
                "args": [_argument_json(argument) for argument in step.arguments],
                "line": step.line,
            }
        case Fill():
            return {"op": "fill", "view": _view_json(step.view), "value": repr(step.value), "line": step.line}
        case Copy():
            return {"op": "copy", "from": _view_json(step.source), "to": _view_json(step.target), "line": step.line}
        case Matmul():
            return _library_json("matmul", step)
        case Convolution():
            return _library_json("conv", step)
        case Attention():
            return _library_json("attention", step)


def _library_json(op: str, step: LibraryStep) -> dict:
    """The fields by their names, views as objects and lengths as lists."""
    fields: dict = {"op": op}
    for name, value in vars(step).items():
        fields[name] = _view_json(value) if isinstance(value, View) else list(value) if type(value) is tuple else value
    return fields


def to_json(plan: Plan) -> str:
    """The plan as one line of JSON, schema 1. Numbers that are not integers travel as text."""
    record = {
        "schema": SCHEMA,
        "buffers": [{"name": b.name, "role": b.role, "dtype": b.dtype, "shape": list(b.shape)} for b in plan.buffers],
        "modules": [{"source": m.source, "options": list(m.options), "kernels": list(m.kernels)} for m in plan.modules],
        "steps": [_step_json(step) for step in plan.steps],
        "outputs": [_view_json(view) for view in plan.outputs],
    }
    return json.dumps(record, separators=(",", ":"))
