"""What a cubin holds, read from its ELF file: global variables, and the sizes of every kernel's parameters.

The bytes may come from a compiler that hostile text has taken over, so every read is bounded and whatever is no cubin
is a ValueError.
"""

import dataclasses
import struct
from collections.abc import Iterator

_SYMTAB, _NOBITS = 2, 8  # section header types
_OBJECT, _FUNCTION = 1, 2  # symbol types
_ENTRY = 0x10  # in st_other of a function that can be launched
_GLOBALS = ".nv.global"  # sections of variables that kernels can write; constants lie elsewhere
_INFO = ".nv.info."  # and a function's name: its attributes
_SIZED = 4  # format of an attribute whose header's last field says how many bytes follow; else it is the value
_KPARAM_INFO, _KPARAM_INFO_V2 = 0x17, 0x45  # attributes; the second where a parameter has 16 KiB or more
_SYMBOL_BYTES = 24
_MOST_SYMBOLS = 1 << 16
_MOST_NAME_BYTES = 1 << 16


@dataclasses.dataclass(frozen=True)
class Variable:
    """One variable outside functions."""

    name: str  # as the driver knows it
    nbytes: int
    at: int | None  # where its initial contents lie in the cubin; None where it starts as zeros
    writable: bool


@dataclasses.dataclass(frozen=True)
class _Section:
    name: str
    type: int
    at: int
    nbytes: int
    link: int  # for a table of symbols: the section of their names


@dataclasses.dataclass(frozen=True)
class _Symbol:
    name: str
    type: int
    other: int
    section: _Section
    value: int
    nbytes: int


def variables(data: bytes) -> tuple[Variable, ...]:
    """Every variable of a cubin. ValueError where it is no whole 64-bit ELF file."""
    return tuple(
        Variable(
            name=symbol.name,
            nbytes=symbol.nbytes,
            at=None if symbol.section.type == _NOBITS else symbol.section.at + symbol.value,
            writable=symbol.section.name.startswith(_GLOBALS),
        )
        for symbol in _symbols(data, _sections(data))
        if symbol.type == _OBJECT
    )


def contents(data: bytes, variable: Variable) -> bytes:
    """A variable's initial bytes, `nbytes` of them. ValueError where the cubin ends before."""
    if variable.at is None:
        return bytes(variable.nbytes)
    return _slice(data, variable.at, variable.nbytes)


def parameter_sizes(data: bytes) -> dict[str, tuple[int, ...]]:
    """Bytes of each kernel's parameters, in order, by the kernel's name in the cubin. ValueError as `variables`.

    They are what the driver reads at a launch: one entry KPARAM_INFO of section .nv.info.<kernel> a parameter, of
    twelve bytes: an index (0), the parameter's number (16 bits), its offset (16 bits), and a word whose bits 18-31 are
    its size (the lower ones: alignment, space, constant bank). In KPARAM_INFO_V2 the whole word is the size.
    """
    sections = _sections(data)
    entries = {s.name for s in _symbols(data, sections) if s.type == _FUNCTION and s.other & _ENTRY}
    found = {}
    for section in sections:
        kernel = section.name.removeprefix(_INFO)
        if section.name.startswith(_INFO) and kernel in entries:
            if kernel in found:
                raise ValueError(f"two sections {section.name}")
            found[kernel] = _sizes(_slice(data, section.at, section.nbytes))
    return found


def _sizes(attributes: bytes) -> tuple[int, ...]:
    sizes = {}
    for attribute, value in _attributes(attributes):
        if attribute in (_KPARAM_INFO, _KPARAM_INFO_V2):
            _, number, _, word = _unpack("<IHHI", value, 0)
            if number in sizes:
                raise ValueError(f"two entries for parameter {number}")
            sizes[number] = word >> 18 if attribute == _KPARAM_INFO else word
    if sorted(sizes) != list(range(len(sizes))):
        raise ValueError(f"entries for the parameters {sorted(sizes)} only")
    return tuple(sizes[number] for number in range(len(sizes)))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(data):
        form, attribute, nbytes = _unpack("<BBH", data, position)
        size = nbytes if form == _SIZED else 0
        yield attribute, _slice(data, position + 4, size)
        position += 4 + size


def _sections(data: bytes) -> list[_Section]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    (table_at,) = _unpack("<Q", data, 40)
    header_bytes, count, names = _unpack("<HHH", data, 58)
    headers = [_unpack("<IIQQQQIIQQ", data, table_at + i * header_bytes) for i in range(count)]
    if names >= count:
        raise ValueError("its sections have no names")
    names_at = headers[names][4]
    return [
        _Section(name=_text(data, names_at + name_at), type=type_, at=at, nbytes=nbytes, link=link)
        for name_at, type_, _, _, at, nbytes, link, _, _, _ in headers
    ]


def _symbols(data: bytes, sections: list[_Section]) -> Iterator[_Symbol]:
    table = next((section for section in sections if section.type == _SYMTAB), None)
    if table is None or table.link >= len(sections) or table.nbytes > _MOST_SYMBOLS * _SYMBOL_BYTES:
        raise ValueError("it has no table of symbols that can be read")
    names_at = sections[table.link].at
    for position in range(table.at, table.at + table.nbytes, _SYMBOL_BYTES):
        name_at, info, other, section, value, nbytes = _unpack("<IBBHQQ", data, position)
        if 0 < section < len(sections):
            name = _text(data, names_at + name_at)
            yield _Symbol(name, info & 15, other, sections[section], value, nbytes)


def _unpack(form: str, data: bytes, at: int) -> tuple:
    return struct.unpack(form, _slice(data, at, struct.calcsize(form)))


def _slice(data: bytes, at: int, nbytes: int) -> bytes:
    if at + nbytes > len(data):
        raise ValueError(f"it ends after {len(data)} bytes, before {nbytes} more at {at}")
    return data[at : at + nbytes]


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _MOST_NAME_BYTES)
    if end < 0:
        raise ValueError(f"no name at {at}")
    return data[at:end].decode()
