"""Whether a change reached the machine code at all: many do not, and then nothing can expose them."""

import hashlib
import struct

from evaluator.devices.cpu import CompiledPlan

_NOTE, _NO_BITS, _ALLOCATED = 7, 8, 2  # types and flag of a section


def fingerprint(compiled: CompiledPlan) -> str:
    """Digest of all that is executed: the loaded sections of the object, the tape, and what of it is handed out.

    Debugging sections and the build id, which name the compiler's temporary folder, are left out.
    """
    plan, data = compiled.plan, compiled.compiled.path.read_bytes()
    digest = hashlib.sha256(compiled.tape)
    digest.update(repr((plan.buffers, plan.outputs)).encode())
    for section in _sections(data):
        _, kind, flags, address, offset, size = section
        if flags & _ALLOCATED and kind != _NOTE:
            digest.update(struct.pack("<QQ", address, size))
            digest.update(b"" if kind == _NO_BITS else data[offset : offset + size])
    return digest.hexdigest()


def _sections(data: bytes) -> list[tuple[int, ...]]:
    """name, type, flags, address, offset and bytes of each section of a 64-bit little-endian ELF file."""
    (start,) = struct.unpack_from("<Q", data, 40)
    each, count = struct.unpack_from("<HH", data, 58)
    return [struct.unpack_from("<IIQQQQ", data, start + i * each) for i in range(count)]
