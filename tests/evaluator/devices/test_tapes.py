"""The runner reads no tape that leaves its buffers: such a tape is a fault of ours, told from one of the program's."""

import numpy as np
import pytest

from evaluator.devices import cpu
from evaluator.devices.faults import Kind
from evaluator.devices.layout import regions
from evaluator.devices.runner_process import RunnerProcess
from evaluator.program.plan import Buffer, Copy, Fill, Matmul, Plan, View
from evaluator.records import Limits, Rung

HEADER = 4 + 3 * 3  # magic and counts, then three words for each of three buffers


@pytest.fixture(scope="module")
def compiled():
    """A plan without kernels: fill t with 2, copy a part of it, multiply."""
    buffers = tuple(Buffer(name, role, "float32", (8, 8)) for name, role in (("a", "input"), ("t", "temporary")))
    buffers += (Buffer("out", "temporary", "float32", (8, 8)),)
    whole = [View(number, 0, (8, 8)) for number in range(3)]
    steps = (
        Fill(whole[1], 2.0, 1),
        Copy(View(0, 0, (4,)), View(1, 60, (4,)), 1),
        Matmul(whole[0], whole[1], whole[2], False, False, 1),
    )
    return cpu.compile(Plan(buffers, (), steps, (whole[2],)), Limits())


def report_of(compiled, words):
    """What the runner says of a tape: the first report, or that of one pass."""
    runner = RunnerProcess(
        str(compiled.compiled.path),
        np.array(words, np.uint64).tobytes(),
        sum(region.region_bytes for region in regions(compiled.plan)),
        threads=1,
        static_shared_bytes=0,
        cpu_s=5.0,
    )
    try:
        if runner.ready.kind is not Kind.READY:
            return runner.ready
        return runner.run(order="forward", seed=0, guard="right", deadline_s=5.0, rung=Rung.LAUNCH, judged=True)
    finally:
        runner.close()


def words_of(compiled):
    return np.frombuffer(compiled.tape, np.uint64).tolist()


def test_the_tape_itself_runs(compiled):
    assert report_of(compiled, words_of(compiled)).kind is Kind.DONE


FILL, COPY, MATMUL = HEADER, HEADER + 6, HEADER + 12
WRONG = {
    "magic": (0, 7, "not a tape of this version"),
    "more steps than there are": (3, 4, "the tape ends early"),
    "steps for ever": (3, 2**63, "the tape ends early"),
    "a buffer larger than its pages": (6, 1 << 20, "buffer 0 does not fit its pages"),
    "a buffer of all bytes": (6, 2**64 - 1, "buffer 0 does not fit its pages"),
    "an unknown step": (FILL, 9, "a step of unknown kind"),
    "a buffer that is none": (FILL + 1, 3, "a buffer that does not exist"),
    "a fill past the end": (FILL + 3, 65, "step 0 of the tape: leaves a buffer"),
    "a fill that wraps around": (FILL + 3, 2**62, "step 0 of the tape: leaves a buffer"),
    "a fill from beyond": (FILL + 2, 2**64 - 256, "step 0 of the tape: leaves a buffer"),
    "a fill of odd width": (FILL + 4, 3, "fills elements of a wrong width"),
    "a copy past the end": (COPY + 5, 17, "step 1 of the tape: leaves a buffer"),
    "a product with longer rows": (MATMUL + 10, 9, "step 2 of the tape: leaves a buffer"),
    "a product with wider strides": (MATMUL + 14, 9, "step 2 of the tape: leaves a buffer"),
    "a product of no known type": (MATMUL + 1, 4, "an unknown number type"),
    "a product without end": (MATMUL + 11, 2**48, "an enormous count"),
}


@pytest.mark.parametrize(("at", "value", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_word_is_refused_before_anything_runs(compiled, at, value, words):
    tape = words_of(compiled)
    tape[at] = value
    report = report_of(compiled, tape)
    assert report.kind is Kind.BAD_TAPE
    assert words in report.text


def test_a_tape_cut_anywhere_ends_early(compiled):
    tape = words_of(compiled)
    for length in range(0, len(tape), 7):
        assert report_of(compiled, tape[:length]).kind is Kind.BAD_TAPE
