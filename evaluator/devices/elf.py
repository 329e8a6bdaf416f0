"""What a compiled object holds, read from its ELF file without loading it: constants, sizes, initialisers."""

import dataclasses
import struct

_DYNAMIC, _LOAD, _TLS = 2, 1, 7  # program header types
_DT_NULL, _DT_RELA, _DT_RELASZ, _DT_INIT, _DT_INIT_ARRAYSZ = 0, 7, 8, 12, 27
_DT_PREINIT_ARRAYSZ, _DT_PLTRELSZ, _DT_JMPREL = 33, 2, 23
_IRELATIVE = {37, 1032}  # x86-64, aarch64: relocations that call code of the object while it loads
_DYNSYM = 11  # section header type


@dataclasses.dataclass(frozen=True)
class Object:
    """Facts of one shared object."""

    symbols: dict[str, bytes]  # name -> contents, of every exported data symbol
    imports: frozenset[str]  # names that whatever loads it must provide
    thread_local_bytes: int  # of the thread-local segment: the static shared memory of its kernels
    thread_local_initialised: bool  # some thread-local variable has an initial value
    runs_code_on_load: bool  # has initialisers or resolver functions


class NotAnObject(Exception):
    """The bytes are no 64-bit little-endian ELF shared object, or a damaged one."""


def read(data: bytes) -> Object:
    """Facts of a shared object's bytes. Raises NotAnObject for anything damaged."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise NotAnObject(f"damaged object: {error}") from error


def _read(data: bytes) -> Object:
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotAnObject("no 64-bit little-endian ELF file")
    headers_at, sections_at = struct.unpack_from("<QQ", data, 32)
    header_bytes, header_count, section_bytes, section_count = struct.unpack_from("<HHHH", data, 54)
    headers = [
        struct.unpack_from("<IIQQQQQQ", data, headers_at + i * header_bytes) for i in range(header_count)
    ]  # type, flags, offset, address, physical address, bytes in the file, bytes in memory, alignment
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * section_bytes) for i in range(section_count)
    ]  # name, type, flags, address, offset, bytes, link, info, alignment, bytes of an entry
    tls = next((header for header in headers if header[0] == _TLS), None)
    symbols, imports = _symbols(data, headers, sections)
    return Object(
        symbols=symbols,
        imports=frozenset(imports),
        thread_local_bytes=tls[6] if tls else 0,
        thread_local_initialised=bool(tls and tls[5]),
        runs_code_on_load=_runs_code_on_load(data, headers),
    )


def _file_offset(headers: list[tuple], address: int) -> int | None:
    """Where the byte of an address lies in the file; None for zero-initialised data, which has none."""
    for kind, _, offset, start, _, file_bytes, _, _ in headers:
        if kind == _LOAD and start <= address < start + file_bytes:
            return offset + address - start
    return None


def _symbols(data: bytes, headers: list[tuple], sections: list[tuple]) -> tuple[dict[str, bytes], list[str]]:
    """Exported data by name, and the names of what is not defined here."""
    table = next((section for section in sections if section[1] == _DYNSYM), None)
    if table is None:
        raise NotAnObject("no table of dynamic symbols")
    names_at = sections[table[6]][4]
    symbols, imports = {}, []
    for position in range(table[4], table[4] + table[5], table[9] or 24):
        name_at, info, _, section, address, size = struct.unpack_from("<IBBHQQ", data, position)
        name = data[names_at + name_at : data.index(b"\0", names_at + name_at)].decode()
        if section == 0 and name:
            imports.append(name)
        elif info & 15 == 1 and size > 0 and (offset := _file_offset(headers, address)) is not None:
            symbols[name] = data[offset : offset + size]
    return symbols, imports


def _runs_code_on_load(data: bytes, headers: list[tuple]) -> bool:
    dynamic = next((header for header in headers if header[0] == _DYNAMIC), None)
    if dynamic is None:
        raise NotAnObject("no dynamic section")
    entries = {}
    for position in range(dynamic[2], dynamic[2] + dynamic[5], 16):
        tag, value = struct.unpack_from("<QQ", data, position)
        if tag == _DT_NULL:
            break
        entries[tag] = value
    if _DT_INIT in entries or entries.get(_DT_INIT_ARRAYSZ) or entries.get(_DT_PREINIT_ARRAYSZ):
        return True
    for start, size in ((_DT_RELA, _DT_RELASZ), (_DT_JMPREL, _DT_PLTRELSZ)):
        if not entries.get(size):
            continue
        first = _file_offset(headers, entries[start])
        if first is None:
            raise NotAnObject("relocations outside the file")
        for position in range(first, first + entries[size], 24):
            if struct.unpack_from("<QQ", data, position)[1] & 0xFFFFFFFF in _IRELATIVE:
                return True
    return False
