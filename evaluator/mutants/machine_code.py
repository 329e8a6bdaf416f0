"""Whether a change reached the machine code at all: many do not, and then nothing can expose them."""

import hashlib
import struct

from evaluator.devices.cpu import CompiledPlan

_NOTE, _NO_BITS = 7, 8  # types of a section
_WRITABLE, _ALLOCATED = 1, 2  # flags
_SOURCE = b"kernel_"  # what the names of a program's modules begin with in the compiler's records


def fingerprint(compiled: CompiledPlan) -> str:
    """Digest of all that is executed: the loaded sections of the object, the tape, and which buffers are handed out.

    Left out are the build id and debugging sections, which name the compiler's temporary folder, and the columns in the
    records of the compiler's own checks, which shift with any change of a line.
    """
    plan, data = compiled.plan, compiled.compiled.path.read_bytes()
    sections = _sections(data)
    digest = hashlib.sha256(compiled.tape)
    digest.update(repr((plan.buffers, plan.outputs)).encode())
    for _, kind, flags, address, offset, size in sections:
        if flags & _ALLOCATED and kind != _NOTE:
            contents = b"" if kind == _NO_BITS else data[offset : offset + size]
            if flags & _WRITABLE:
                contents = _without_columns(contents, data, sections)
            digest.update(struct.pack("<QQ", address, size) + contents)
    return digest.hexdigest()


def _without_columns(contents: bytes, data: bytes, sections: list[tuple[int, ...]]) -> bytes:
    """Zeros in place of the columns of {address of the file's name, line, column}, of 8, 4 and 4 bytes."""
    cleared = bytearray(contents)
    for at in range(0, len(contents) - 15, 8):
        (name,) = struct.unpack_from("<Q", contents, at)
        place = next((name - s[3] + s[4] for s in sections if s[2] & _ALLOCATED and s[3] <= name < s[3] + s[5]), None)
        if place is not None and data.startswith(_SOURCE, place):
            cleared[at + 12 : at + 16] = bytes(4)
    return bytes(cleared)


def _sections(data: bytes) -> list[tuple[int, ...]]:
    """name, type, flags, address, offset and bytes of each section of a 64-bit little-endian ELF file."""
    (start,) = struct.unpack_from("<Q", data, 40)
    each, count = struct.unpack_from("<HH", data, 58)
    return [struct.unpack_from("<IIQQQQ", data, start + i * each) for i in range(count)]
