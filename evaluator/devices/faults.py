"""What a runner's report means: an outcome, and a sentence that names buffer, offset, block, thread and line."""

import dataclasses
import enum
import pathlib
import re
import struct

from evaluator.devices import toolchain
from evaluator.devices.poison import numpy_dtype
from evaluator.program.plan import Launch, Plan
from evaluator.records import Outcome, ProgramFault, Rung

_LAYOUT = struct.Struct("<IIi3I3Iiiiq3qQQii96s")
REPORT_BYTES = _LAYOUT.size
MAGIC = 0x31554D45


class Kind(enum.IntEnum):
    """Numbers of `ReportKind` in csrc/emulator/messages.hpp."""

    READY = 1
    DONE = 2
    OUT_OF_BUFFER = 10
    NULL_POINTER = 11
    WILD_POINTER = 12
    STACK_OVERFLOW = 13
    OUT_OF_DYNAMIC_SHARED = 14
    INDEX_OUT_OF_ARRAY = 15
    MISALIGNED = 16
    READ_ONLY_MEMORY = 17
    INTEGER_DIVISION = 20
    TRAP = 21
    ASSERTION = 22
    ILLEGAL_INSTRUCTION = 23
    ABORTED = 24
    OUT_OF_MEMORY = 25
    BARRIER_AFTER_EXIT = 30
    BARRIER_SITES = 31
    WARP_SITES = 32
    LANE_OUTSIDE_MASK = 33
    DEADLOCK = 34
    SHARED_SLACK_WRITTEN = 35
    CANNOT_LOAD = 90
    BAD_TAPE = 91


_OUTCOMES = {
    Kind.OUT_OF_BUFFER: Outcome.OUT_OF_BOUNDS,
    Kind.NULL_POINTER: Outcome.OUT_OF_BOUNDS,
    Kind.WILD_POINTER: Outcome.OUT_OF_BOUNDS,
    Kind.OUT_OF_DYNAMIC_SHARED: Outcome.OUT_OF_BOUNDS,
    Kind.INDEX_OUT_OF_ARRAY: Outcome.OUT_OF_BOUNDS,
    Kind.READ_ONLY_MEMORY: Outcome.OUT_OF_BOUNDS,
    Kind.SHARED_SLACK_WRITTEN: Outcome.OUT_OF_BOUNDS,
    Kind.MISALIGNED: Outcome.MISALIGNED,
    Kind.OUT_OF_MEMORY: Outcome.OUT_OF_MEMORY,
    Kind.BARRIER_AFTER_EXIT: Outcome.BAD_BARRIER,
    Kind.BARRIER_SITES: Outcome.BAD_BARRIER,
    Kind.WARP_SITES: Outcome.BAD_BARRIER,
    Kind.LANE_OUTSIDE_MASK: Outcome.BAD_BARRIER,
    Kind.DEADLOCK: Outcome.BAD_BARRIER,
    Kind.CANNOT_LOAD: Outcome.EVALUATOR_ERROR,
    Kind.BAD_TAPE: Outcome.EVALUATOR_ERROR,
}  # everything else is CRASHED


@dataclasses.dataclass(frozen=True)
class Report:
    """One record from a runner. Untrusted: a program may have written it."""

    kind: Kind
    step: int  # index into the plan's steps, -1 outside a launch
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    line: int  # of the kernel's text, 0 where unknown
    other_line: int
    buffer: int  # index into the plan's buffers, -1 if none
    offset: int  # bytes
    counts: tuple[int, int, int]
    address: int
    instruction: int  # offset in the object, 0 where unknown
    is_write: int  # 1, 0, or -1 where unknown
    flags: int
    text: str


def unpack(data: bytes) -> Report | None:
    """The report in `data`, or None where it is none."""
    fields = _LAYOUT.unpack(data)
    try:
        kind = Kind(fields[1])
    except ValueError:
        return None
    if fields[0] != MAGIC:
        return None
    return Report(
        kind=kind,
        step=fields[2],
        block=fields[3:6],
        thread=fields[6:9],
        line=fields[9],
        other_line=fields[10],
        buffer=fields[11],
        offset=fields[12],
        counts=fields[13:16],
        address=fields[16],
        instruction=fields[17],
        is_write=fields[18],
        flags=fields[19],
        text=fields[20].split(b"\0")[0].decode("ascii", "replace"),
    )


def fault(report: Report, plan: Plan, object_path: pathlib.Path, rung: Rung) -> ProgramFault:
    """The fault that a report states."""
    outcome = _OUTCOMES.get(report.kind, Outcome.CRASHED)
    launch = plan.steps[report.step] if 0 <= report.step < len(plan.steps) else None
    where = ""
    if isinstance(launch, Launch):
        line = report.line or _line_of_instruction(object_path, report.instruction)
        block, thread = (",".join(map(str, index)) for index in (report.block, report.thread))
        where = f" [kernel {launch.kernel!r}{_quoted(plan, launch, line)}, block ({block}), thread ({thread})]"
    line_of_program = launch.line if launch is not None else None
    return ProgramFault(outcome, rung, _sentence(report, plan) + where, line_of_program)


def _quoted(plan: Plan, launch: Launch, line: int) -> str:
    text = plan.modules[launch.module].source.splitlines()
    return f", its line {line}: {text[line - 1].strip()[:100]}" if 0 < line <= len(text) else ""


def _access(report: Report) -> str:
    return {1: "write", 0: "read"}.get(report.is_write, "access")


def _out_of_buffer(report: Report, plan: Plan) -> str:
    if not 0 <= report.buffer < len(plan.buffers):
        return f"{_access(report)} outside every buffer"
    buffer = plan.buffers[report.buffer]
    width = numpy_dtype(buffer.dtype).itemsize
    if report.offset < 0:
        place = f"{-report.offset} bytes before the start"
    else:
        place = f"{report.offset - buffer.nbytes} bytes past the end"
    return (
        f"{_access(report)} at byte {report.offset} of buffer {buffer.name!r} (element {report.offset // width}), "
        f"{place}: it has {buffer.nbytes} bytes ({buffer.size} elements)"
    )


def _lane_outside(report: Report) -> str:
    return f"lane {report.counts[0]} calls a warp operation whose mask {report.counts[1]:#010x} leaves it out"


def _index(report: Report) -> str:
    index, is_signed, bits = report.counts
    if is_signed and 0 < bits < 64:
        index = (index + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    kind = report.text.replace(" [", "[")  # gcc and clang spell it differently
    return f"index {index} is outside the array of type {kind}"


def _deadlock(report: Report) -> str:
    at_barrier, at_warp, ended = report.counts
    barrier = f"{at_barrier} threads wait at the barrier of line {report.line}" if at_barrier else ""
    warp = f"{at_warp} threads wait at the warp operation of line {report.other_line}" if at_warp else ""
    return f"deadlock: {' and '.join(filter(None, (barrier, warp)))}, {ended} have ended"


def _sentence(report: Report, plan: Plan) -> str:
    first, second, third = report.counts
    match report.kind:
        case Kind.OUT_OF_BUFFER:
            return _out_of_buffer(report, plan)
        case Kind.NULL_POINTER:
            return f"{_access(report)} through a null pointer (address {report.address:#x})"
        case Kind.WILD_POINTER:
            return f"{_access(report)} through a pointer to nowhere (address {report.address:#x})"
        case Kind.STACK_OVERFLOW:
            return f"stack overflow: a thread's local arrays and calls exceed {first // 1024} kB"
        case Kind.OUT_OF_DYNAMIC_SHARED:
            return f"{_access(report)} at byte {report.offset} of dynamic shared memory, which has {first} bytes"
        case Kind.INDEX_OUT_OF_ARRAY:
            return _index(report)
        case Kind.MISALIGNED:
            return f"access to type {report.text} at an address that is no multiple of {first}"
        case Kind.READ_ONLY_MEMORY:
            return "write to constant memory"
        case Kind.SHARED_SLACK_WRITTEN:
            return "write past the end of dynamic shared memory, seen when the block ended"
        case Kind.INTEGER_DIVISION:
            return "integer division by zero (or of the smallest integer by -1)"
        case Kind.TRAP:
            return "__trap()"
        case Kind.ASSERTION:
            return f"assertion failed: {report.text}"
        case Kind.OUT_OF_MEMORY:
            return report.text or "out of memory"
        case Kind.BARRIER_AFTER_EXIT:
            return (
                f"barrier in divergent code: {first} threads wait at __syncthreads of line {report.line}, "
                f"{third} ended without meeting it"
            )
        case Kind.BARRIER_SITES:
            return (
                f"barrier in divergent code: a thread is at the barrier of line {report.line} while {first} others "
                f"wait at another one, line {report.other_line}"
            )
        case Kind.WARP_SITES:
            return (
                f"warp operation in divergent code: lane {first} is at line {report.line} and lane {second} at line "
                f"{report.other_line}, with the same mask"
            )
        case Kind.LANE_OUTSIDE_MASK:
            return _lane_outside(report)
        case Kind.DEADLOCK:
            return _deadlock(report)
        case Kind.CANNOT_LOAD:
            return f"the compiled object cannot be loaded: {report.text}"
        case Kind.BAD_TAPE:
            return f"the runner cannot read the plan: {report.text}"
        case _:
            return report.kind.name.lower().replace("_", " ")


def _line_of_instruction(object_path: pathlib.Path, instruction: int) -> int:
    """Line of the kernel's text that an instruction was compiled from, 0 where that cannot be told."""
    if instruction <= 0:
        return 0
    try:
        tools = toolchain.find()
        text = toolchain.line_table(tools, object_path, instruction)
    except (ProgramFault, OSError):
        return 0
    # Innermost first: a shim function that was inlined stands before the kernel's own line.
    match = re.search(r"kernel_\d+\.cu:(\d+)", text)
    return int(match[1]) if match else 0
