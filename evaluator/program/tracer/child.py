"""The process that runs a program's `forward` on symbolic arrays. It confines itself before it reads the program.

Protocol: once it is confined it writes READY, the layers that are not in force and a newline, reads one request
(marshal: it comes from the evaluator), writes one reply (JSON: the program may have taken this process over) and ends.
"""

import marshal
import os
import sys
from types import FunctionType

from evaluator.program.tracer.arrays import Array
from evaluator.program.tracer.confinement import confine
from evaluator.program.tracer.faults import TraceFault
from evaluator.program.tracer.json_text import dumps
from evaluator.program.tracer.namespaces import program_globals
from evaluator.program.tracer.recorder import PROGRAM_FILE, Recorder
from evaluator.program.tracer.scalars import dtype_of

READY = b"ready without: "
_HAS_VARARGS = 0x04  # inspect.CO_VARARGS, without importing inspect


def main() -> None:
    """Body of the child: arguments are the path of the extension and the limits, as text."""
    core_path, cpu_s, memory_bytes, layers = *sys.argv[-4:-3], int(sys.argv[-3]), int(sys.argv[-2]), sys.argv[-1]
    missing = confine(core_path, cpu_s, memory_bytes, layers.split(",") if layers else [])
    os.write(1, READY + ",".join(missing).encode() + b"\n")
    request = marshal.loads(_read_all(0))
    _write_all(1, dumps(_reply(request)).encode("utf-8", "surrogatepass"))
    os._exit(0)  # whatever the program left behind does not run at interpreter exit


def _reply(request: dict) -> dict:
    try:
        return _trace(request)
    except TraceFault as fault:
        return _fault(fault.outcome, str(fault), fault)
    except MemoryError as error:
        return _fault("trace_error", "the trace ran out of memory", error)
    except RecursionError as error:
        return _fault("trace_error", "the program recurses too deeply", error)
    except Exception as error:
        detail = f": {error}" if str(error) else ""
        return _fault("trace_error", type(error).__name__ + detail, error)


def _trace(request: dict) -> dict:
    recorder = Recorder(max_steps=request["max_steps"], max_bytes=request["max_bytes"])
    arguments: list = [_input(recorder, *described) for described in request["arrays"]]
    if keys := request["dict_keys"]:
        arguments[-len(keys) :] = [dict(zip(keys, arguments[-len(keys) :], strict=True))]
    names = program_globals(recorder)
    exec(compile(request["text"], PROGRAM_FILE, "exec", dont_inherit=True), names)
    forward = names.get("forward")
    if not isinstance(forward, FunctionType):
        raise TraceFault("trace_error", "the program defines no function `forward`")
    _check_arity(forward, arguments, request)
    result = forward(*arguments)
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    if not outputs:
        raise TraceFault("trace_error", "forward returned no arrays")
    for output in outputs:
        if not isinstance(output, Array):
            raise TraceFault("trace_error", f"forward returned a {type(output).__name__}, expected arrays")
    plan = {
        "schema": 1,
        "buffers": recorder.buffers,
        "modules": recorder.modules,
        "steps": recorder.steps,
        "outputs": [output.view() for output in outputs],
    }
    return {"plan": plan, "c_names": recorder.c_names}


def _check_arity(forward: FunctionType, arguments: list, request: dict) -> None:
    code = forward.__code__
    least = code.co_argcount - len(forward.__defaults__ or ())
    most = len(arguments) if code.co_flags & _HAS_VARARGS else code.co_argcount
    if not least <= len(arguments) <= most:
        names = [name for name, *_ in request["arrays"]]
        if request["dict_keys"]:
            names[-len(request["dict_keys"]) :] = ["params (a dict)"]
        message = f"forward takes {code.co_argcount} arguments, the task gives {len(arguments)}: {', '.join(names)}"
        raise TraceFault("trace_error", message)


def _input(recorder: Recorder, name: str, shape: tuple[int, ...], dtype: str) -> Array:
    buffer = recorder.buffer("input", dtype, shape, name)
    return Array(recorder, buffer, 0, shape, dtype_of(dtype))


def _fault(outcome: str, message: str, error: BaseException) -> dict:
    return {"fault": {"outcome": outcome, "message": message[:1000], "line": _line(error)}}


def _line(error: BaseException) -> int:
    """Line of the innermost frame of the program on the error's way up; 0 where there is none."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == PROGRAM_FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _read_all(descriptor: int) -> bytes:
    chunks = []
    while chunk := os.read(descriptor, 1 << 16):
        chunks.append(chunk)
    return b"".join(chunks)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
