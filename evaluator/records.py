"""The evaluator's vocabulary: outcomes, rungs, limits, and the verdict that every check ends in."""

import dataclasses
import enum
from collections.abc import Mapping

VERDICT_SCHEMA = 1
EVALUATOR_VERSION = "0.1.0"
LAYERS = ("rlimits", "landlock", "seccomp")  # of confinement: docs/isolation.md


class Rung(enum.StrEnum):
    """Steps of the ladder, in the order in which a program climbs them."""

    EXTRACT = "extract"
    SCREEN = "screen"
    TRACE = "trace"
    COMPILE = "compile"
    LAUNCH = "launch"
    MEMORY_SAFETY = "memory_safety"
    CORRECTNESS = "correctness"
    TIMING = "timing"
    RECHECK = "recheck"


class Outcome(enum.StrEnum):
    """How a check ended. Everything but OK and EVALUATOR_ERROR is a finding about the program."""

    OK = "ok"
    NO_PROGRAM = "no_program"
    REFUSED = "refused"
    TRACE_ERROR = "trace_error"
    WRONG_SHAPE = "wrong_shape"
    COMPILE_ERROR = "compile_error"
    UNSUPPORTED = "unsupported"
    LAUNCH_ERROR = "launch_error"
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    BAD_BARRIER = "bad_barrier"
    MODIFIED_INPUT = "modified_input"
    UNWRITTEN_OUTPUT = "unwritten_output"
    STATEFUL = "stateful"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    WRONG_VALUE = "wrong_value"
    PRECISION_DOWNGRADE = "precision_downgrade"
    NONDETERMINISTIC = "nondeterministic"
    UNSTABLE_TIMING = "unstable_timing"
    TOO_FAST = "too_fast"
    WRONG_AFTER_TIMING = "wrong_after_timing"
    TIMEOUT = "timeout"
    NOT_REPRODUCED = "not_reproduced"
    EVALUATOR_ERROR = "evaluator_error"


class Mode(enum.StrEnum):
    """How long the judge looks: training, command line, published figures."""

    QUICK = "quick"
    STANDARD = "standard"
    VERIFY = "verify"


@dataclasses.dataclass(frozen=True)
class Fault:
    """Why a program fell off the ladder. Data, never an exception that reaches a caller."""

    outcome: Outcome
    rung: Rung
    message: str  # what was seen, what was expected
    line: int | None = None  # line of the program file, 1-based, where one is to blame


class ProgramFault(Exception):
    """Carries a Fault from the rung that found it to the ladder, the only place that catches it."""

    def __init__(self, outcome: Outcome, rung: Rung, message: str, line: int | None = None):
        super().__init__(message)
        self.fault = Fault(outcome, rung, message, line)


class ProcessLost(ProgramFault):
    """A process of ours was lost, killed from outside or for want of memory: no fault of the program.

    The judge looks at the program once more; where that ends alike the outcome is `evaluator_error`.
    """

    def __init__(self, rung: Rung, message: str):
        super().__init__(Outcome.EVALUATOR_ERROR, rung, message)


def killed(rung: Rung, process: str) -> ProcessLost:
    """A `process` that was killed by something else on this machine."""
    return ProcessLost(rung, f"something else on this machine killed {process}; is there memory enough?")


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one program may use. Every field can be set from a config; these are the documented defaults."""

    source_bytes: int = 256_000  # size of the program text
    plan_steps: int = 65_536  # launches, fills, copies, library steps
    library_steps: bool = True  # whether programs may use cp.matmul and evaluator.lib
    trace_s: float = 10.0  # wall time of the sandboxed trace
    compile_s: float = 30.0  # CPU time of one compilation
    kernel_s: float = 10.0  # CPU time of one replay of a plan on the emulator
    memory_bytes: int = (
        1 << 30
    )  # buffers of a plan, of which eight processes hold a copy each; for cuda see `for_device`
    confinement: tuple[str, ...] = (
        LAYERS  # layers around tracer, compilers and emulator; fewer only for a broken system
    )
    gpu_confinement: tuple[str, ...] = LAYERS  # around the process that has the GPU; fewer where a driver dislikes one
    gpu_share: float = 1.0  # of a GPU's memory that judging on it may take; the rest is for others, such as a learner
    timing_s: Mapping[Mode, float] = dataclasses.field(
        default_factory=lambda: {Mode.QUICK: 0.3, Mode.STANDARD: 3.0, Mode.VERIFY: 30.0}
    )  # device time spent on timing; on cpu at most 2 s
    cpu_timing_s: float = 2.0

    @classmethod
    def for_device(cls, device: str) -> "Limits":
        """The defaults on a device: benchmark sizes need tens of gigabytes, which the emulator never sees."""
        return cls(memory_bytes=48 << 30) if device == "cuda" else cls()


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its 99 % confidence interval."""

    value: float
    low: float
    high: float
    buckets: tuple[float, ...] = ()  # of a paired speed-up: means of its seven buckets, whose median is the value


@dataclasses.dataclass(frozen=True)
class CaseError:
    """Worst error of one correctness case."""

    case: str  # name of the input case, for example "negated"
    seed: int
    error: float  # scale-aware error of the program against the float64 oracle
    bound: float  # what was allowed


@dataclasses.dataclass(frozen=True)
class Work:
    """What a task makes any program do, and the device's peaks to hold a program's rates against."""

    moved_bytes: int  # of the outputs, and of the inputs that they depend on
    operations: int  # of the reference, counted from its shapes; a program may need fewer
    peak_bytes_per_s: float | None = None  # None on cpu, and where the driver does not tell
    peak_flop_per_s: float | None = None  # at the task's precision class; None as well where tables do not tell


@dataclasses.dataclass(frozen=True)
class Achieved:
    """Rates of one program: the task's work over the program's time."""

    bytes_per_s: float
    flop_per_s: float
    bandwidth_share: float | None  # of the peak; above 1 where the L2 cache holds a part
    flop_share: float | None  # of the peak; above 1 where a program needs fewer operations than the reference


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the evaluator found about one program on one task; `to_json` gives the documented JSON object."""

    outcome: Outcome
    rung: Rung | None  # rung that ended the check; None for OK
    message: str
    line: int | None
    task: str  # task id
    size: str  # cpu, kb or kb_v0
    device: str  # cpu or cuda
    mode: Mode
    program_sha256: str  # of the text with LF line ends; "" where no program was found
    evaluator_version: str
    seeds: tuple[int, ...]
    errors: tuple[CaseError, ...]
    times: Mapping[str, Interval]  # microseconds, by name: program, and each baseline
    speedups: Mapping[str, Interval]  # baseline time over program time
    speedup: float | None  # smallest over the paired baselines, rounded towards 1 to two decimals
    own_kernel_share: float | None  # share of device time in the program's own kernels
    peak_bytes: int | None  # inputs, temporaries and outputs of the plan
    floor_us: float | None  # time the device needs to move the bytes; None on cpu
    compiler: Mapping[str, int | None]  # registers, spills, shared_bytes
    rung_ms: Mapping[str, float]  # wall milliseconds per rung
    device_name: str = ""  # model, such as "NVIDIA H200": figures of two models are never compared; "" where unknown
    work: Work | None = None  # None where nothing was timed, and in verdicts of older versions
    schema: int = VERDICT_SCHEMA

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def achieved(self) -> Achieved | None:
        """The program's rates; None without its time or its task's work."""
        if self.work is None or "program" not in self.times:
            return None
        seconds = 1e-6 * self.times["program"].value
        moved, done = self.work.moved_bytes / seconds, self.work.operations / seconds
        return Achieved(
            bytes_per_s=moved,
            flop_per_s=done,
            bandwidth_share=None if self.work.peak_bytes_per_s is None else moved / self.work.peak_bytes_per_s,
            flop_share=None if self.work.peak_flop_per_s is None else done / self.work.peak_flop_per_s,
        )
