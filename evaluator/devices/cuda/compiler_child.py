"""The process that runs NVRTC on hostile text. It confines itself before it reads any.

NVRTC serialises within a process and its messages print lines of any file it can open, so each worker is a process of
its own that can read NVRTC's folder and the headers, and write nothing.
Protocol, both ways: four bytes of length, then so many bytes. A request is marshal (it comes from the evaluator); a
reply is JSON, followed by a second block with the cubin (a text may have taken this process over).
"""

import json
import marshal
import os
import struct
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec


def main() -> None:
    """Body of the child: one argument, a JSON object with core, nvrtc, warm_up, readable, limits and layers."""
    setup = json.loads(sys.argv[-1])
    core = _load(setup["core"])
    try:
        nvrtc = core.Nvrtc(setup["nvrtc"])
        nvrtc.compile('extern "C" __global__ void warm_up() {}', "warm_up.cu", [setup["warm_up"]], {}, [])
        walls = {name: setup[name] for name in ("readable", "limits", "layers")}
        missing = core.confine("nvrtc", **walls)["missing"]
    except Exception as error:
        _send(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        return
    _send(json.dumps({"missing": missing, "version": nvrtc.version()}).encode())
    while (request := _receive()) is not None:
        reply, cubin = _compile(core, nvrtc, marshal.loads(request))
        _send(json.dumps(reply).encode("utf-8", "replace"))
        _send(cubin)


def _compile(core, nvrtc, request: dict) -> tuple[dict, bytes]:
    try:
        cubin, log, lowered = nvrtc.compile(**request)
    except core.NvrtcError as error:
        return {"rejected": str(error)}, b""
    except UnicodeError as error:  # a message repeats bytes of the text's literals
        return {"rejected": f"error: NVRTC's messages are no UTF-8 ({error}): write no \\x escapes above 7F"}, b""
    except RuntimeError as error:
        return {"error": str(error)}, b""
    return {"log": log, "lowered": lowered}, cubin


def _load(path: str):
    """`evaluator._core` from its file, because the interpreter runs without site-packages."""
    loader = ExtensionFileLoader("evaluator._core", path)
    spec = ModuleSpec("evaluator._core", loader, origin=path)
    core = loader.create_module(spec)
    core.__spec__ = spec  # pybind11 reads it while the module initialises
    loader.exec_module(core)
    return core


def _send(content: bytes) -> None:
    view = memoryview(struct.pack("<I", len(content)) + content)
    while view:
        view = view[os.write(1, view) :]


def _receive() -> bytes | None:
    head = _read(4)
    return None if len(head) < 4 else _read(struct.unpack("<I", head)[0])


def _read(count: int) -> bytes:
    chunks = b""
    while len(chunks) < count:
        chunk = os.read(0, count - len(chunks))
        if not chunk:
            break
        chunks += chunk
    return chunks
