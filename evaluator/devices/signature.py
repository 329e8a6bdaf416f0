"""Whether a launch's arguments fit the kernel's parameters, as CuPy and the CUDA driver would pass them."""

import dataclasses
import re
import struct

import ml_dtypes
import numpy as np

from evaluator.program import cuda_text
from evaluator.program.plan import Argument, FloatArgument, IntArgument, Launch, ScalarArgument, View
from evaluator.records import Outcome, ProgramFault, Rung

_POINTER, _SIGNED, _UNSIGNED, _FLOATING, _HALF, _BFLOAT16, _BOOL, _OTHER = range(8)
_DTYPES = {
    **{(_SIGNED, bytes_): f"int{8 * bytes_}" for bytes_ in (1, 2, 4, 8)},
    **{(_UNSIGNED, bytes_): f"uint{8 * bytes_}" for bytes_ in (1, 2, 4, 8)},
    (_FLOATING, 4): "float32",
    (_FLOATING, 8): "float64",
    (_HALF, 2): "float16",
    (_BFLOAT16, 2): "bfloat16",
    (_BOOL, 1): "bool",
}
_C_NAMES = {"int32": "int", "uint32": "unsigned int", "int64": "long long", "float32": "float", "float64": "double"}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a compiled kernel."""

    kind: int  # the runtime's ParameterKind
    nbytes: int
    name: str  # as in the kernel's text; "" where it could not be found

    @property
    def dtype(self) -> str | None:
        return _DTYPES.get((self.kind, self.nbytes))


@dataclasses.dataclass(frozen=True)
class Value:
    """An argument as the kernel receives it: a number's bytes in the low end of a word."""

    word: int


def parameters(exported: bytes, source: str, kernel: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel from the record that its object exports."""
    (count,) = struct.unpack_from("<i", exported)
    names = parameter_names(source, kernel)
    if len(names) != count:
        names = [""] * count
    kinds = [struct.unpack_from("<ii", exported, 4 + 8 * i) for i in range(count)]
    return tuple(Parameter(kind, nbytes, name) for (kind, nbytes), name in zip(kinds, names, strict=True))


def parameter_names(source: str, kernel: str) -> list[str]:
    """Names of a kernel's parameters in its text; empty where the text does not show the kernel (a macro makes it)."""
    name = re.split(r"[<\s]", kernel.strip())[0].split("::")[-1]
    for found in cuda_text.kernels(source):
        if found.name == name:
            return [parameter.name for parameter in found.parameters]
    return []


def pack(value: int | float | bool, dtype: str) -> int:
    """A number's bytes in the given dtype, as an unsigned word."""
    with np.errstate(over="ignore"):
        data = np.asarray(value).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype).tobytes()
    return int.from_bytes(data, "little")


def check(launch: Launch, wanted: tuple[Parameter, ...]) -> tuple[View | Value, ...]:
    """The launch's arguments in the kernel's own types. Raises ProgramFault `launch_error` naming the parameter."""
    given = launch.arguments
    if len(given) != len(wanted):
        message = f"kernel {launch.kernel!r} takes {len(wanted)} arguments, the launch gives {len(given)}"
        raise ProgramFault(Outcome.LAUNCH_ERROR, Rung.LAUNCH, message, launch.line)
    return tuple(
        _fit(launch, position, argument, parameter)
        for position, (argument, parameter) in enumerate(zip(given, wanted, strict=True))
    )


def _describe(parameter: Parameter) -> str:
    if parameter.kind == _POINTER:
        kind = "a pointer"
    elif parameter.dtype:
        kind = _C_NAMES.get(parameter.dtype, parameter.dtype)
    else:
        kind = f"a type of {parameter.nbytes} bytes"
    return f"{kind} {parameter.name}".strip()


def _fit(launch: Launch, position: int, argument: Argument, parameter: Parameter) -> View | Value:
    def refuse(seen: str, cure: str = "") -> ProgramFault:
        message = f"kernel {launch.kernel!r}, argument {position + 1} ({_describe(parameter)}): got {seen}"
        return ProgramFault(Outcome.LAUNCH_ERROR, Rung.LAUNCH, message + (f"; {cure}" if cure else ""), launch.line)

    if parameter.kind == _OTHER:
        message = f"kernel {launch.kernel!r} takes a structure by value as argument {position + 1}"
        raise ProgramFault(Outcome.UNSUPPORTED, Rung.COMPILE, message, launch.line)
    dtype = parameter.dtype
    if isinstance(argument, View):
        if parameter.kind != _POINTER:
            raise refuse("an array", "pass a number, or take a pointer")
        return argument
    if parameter.kind == _POINTER or dtype is None:
        if isinstance(argument, IntArgument) and argument.value == 0:
            return Value(0)
        raise refuse(_seen(argument), "pass an array")
    is_integer = parameter.kind in (_SIGNED, _UNSIGNED, _BOOL)
    match argument:
        case IntArgument(value):
            if not is_integer:
                raise refuse(_seen(argument), f"CuPy passes its eight bytes unconverted: write cp.{dtype}({value})")
            return Value(_integer_word(value, parameter, refuse))
        case FloatArgument(value):
            if dtype != "float64":
                raise refuse(_seen(argument), f"CuPy passes a float as double: write cp.{dtype}({value!r})")
            return Value(pack(value, dtype))
        case ScalarArgument(given, value):
            same_width = is_integer and given.lstrip("u") == dtype.lstrip("u")
            if given != dtype and not same_width:
                raise refuse(_seen(argument), f"write cp.{dtype}({value!r})")
            return Value(pack(value, given))
    raise AssertionError(argument)


def _seen(argument: Argument) -> str:
    match argument:
        case IntArgument(value):
            return f"the int {value}"
        case FloatArgument(value):
            return f"the float {value!r}"
        case ScalarArgument(dtype, value):
            return f"cp.{dtype}({value!r})"
    return "an array"


def _integer_word(value: int, parameter: Parameter, refuse) -> int:
    bits = 8 * parameter.nbytes
    if parameter.kind == _BOOL:
        return int(bool(value))
    high = 2 ** (bits - 1) - 1 if parameter.kind == _SIGNED else 2**bits - 1
    # An unsigned parameter takes the bits of a negative number, as the device would.
    if not -(2 ** (bits - 1)) <= value <= high:
        raise refuse(f"the int {value}", f"it does not fit {bits} bits")
    return value % 2**bits
