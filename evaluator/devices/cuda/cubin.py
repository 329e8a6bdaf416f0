"""What a cubin holds, read from its ELF file: its global variables and their initial contents."""

import dataclasses
import struct
from collections.abc import Iterator

_SYMTAB, _NOBITS = 2, 8  # section header types
_OBJECT = 1  # symbol type
_GLOBALS = ".nv.global"  # sections of variables that kernels can write; constants lie elsewhere


@dataclasses.dataclass(frozen=True)
class Variable:
    """One variable outside functions."""

    name: str  # as the driver knows it
    contents: bytes | None  # None where it starts as zeros
    writable: bool


def variables(data: bytes) -> tuple[Variable, ...]:
    """Every variable of a cubin. ValueError where it is no 64-bit ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    return tuple(_variables(data))


def _variables(data: bytes) -> Iterator[Variable]:
    (sections_at,) = struct.unpack_from("<Q", data, 40)
    section_bytes, section_count, names_section = struct.unpack_from("<HHH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * section_bytes) for i in range(section_count)
    ]  # name, type, flags, address, offset, bytes, link, info, alignment, bytes of an entry
    table = next((section for section in sections if section[1] == _SYMTAB), None)
    if table is None:
        return
    names_at = sections[table[6]][4]
    for position in range(table[4], table[4] + table[5], table[9] or 24):
        name_at, info, _, section, value, size = struct.unpack_from("<IBBHQQ", data, position)
        if info & 15 != _OBJECT or not 0 < section < section_count:
            continue
        start = sections[section][4] + value
        contents = None if sections[section][1] == _NOBITS else data[start : start + size]
        inside = _text(data, sections[names_section][4] + sections[section][0])
        yield Variable(_text(data, names_at + name_at), contents, inside.startswith(_GLOBALS))


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
