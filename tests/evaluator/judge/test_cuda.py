"""The ladder on a GPU: bad programs get the outcome in their name there too, honest ones a score over two baselines."""

import os
import signal
from pathlib import Path

import pytest

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.ladder import Judge
from evaluator.judge.table import block
from evaluator.judge.text_file import read_program
from evaluator.records import Limits, Mode, Outcome
from evaluator.tasks import catalog

pytestmark = pytest.mark.gpu

# What only the emulator can tell: it orders threads and checks barriers; a GPU runs what the emulator cannot.
EMULATOR_ONLY = {Outcome.BAD_BARRIER, Outcome.NONDETERMINISTIC, Outcome.UNSUPPORTED}
# Programs that are no fault on a GPU: NVRTC drops the load that is misaligned and the loop that never ends, assembly is
# allowed, blocks run side by side; and a stack that overflows shows as a stray access. Literals lie in memory that can
# be written to and is watched; whether a store to constant memory arrives is up to the device.
NOT_ON_A_GPU = {
    "crashed__endless_recursion",
    "misaligned__float4_from_an_odd_address",
    "out_of_bounds__literal_written_to",
    "stateful__constant_written_to",
    "timeout__endless_kernel",
    "timeout__spins_on_another_block",
}
CANDIDATES = [
    path
    for path in sorted((Path(__file__).parents[2] / "candidates").glob("*.py"))
    if Outcome(path.stem.partition("__")[0]) not in EMULATOR_ONLY and path.stem not in NOT_ON_A_GPU
]
HONEST = sorted(kernels_folder().glob("*/*.py"))
IMPATIENT = Limits(trace_s=2.0, compile_s=2.0, kernel_s=2.0)


@pytest.fixture(scope="module")
def judge():
    with Judge("cuda", mode=Mode.QUICK, seed=2024, limits=IMPATIENT) as started:
        yield started


def task_of(text):
    first = text.partition("\n")[0]
    return catalog.get(first.removeprefix("# task: ").strip() if first.startswith("# task: ") else "1_019")


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_bad_program_gets_the_outcome_in_its_name(path, judge):
    text = read_program(path)
    expected = Outcome(path.stem.partition("__")[0])
    verdict = judge.check(text, task_of(text), timing=expected is Outcome.WRONG_AFTER_TIMING)
    assert verdict.outcome is expected, block(path.name, verdict)
    assert verdict.speedup is None


@pytest.mark.parametrize("path", HONEST, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_honest_program_is_ok(path, judge):
    verdict = judge.check(read_program(path), catalog.get(path.parent.name), timing=path.stem == "plain")
    assert verdict.ok, block(str(path), verdict)
    if path.stem == "plain":
        assert set(verdict.speedups) == {"eager", "graph"}
        assert verdict.speedup is not None
        assert verdict.compiler["registers"] > 0


def test_a_process_lost_between_two_programs_costs_no_verdict(judge):
    path = kernels_folder() / "1_019" / "plain.py"
    assert judge.check(read_program(path), catalog.get("1_019"), timing=False).ok
    os.kill(judge._bench._child.pid, signal.SIGKILL)
    assert judge.check(read_program(path), catalog.get("1_019"), timing=False).ok
