"""Bad programs get the outcome in their name; honest ones get ok. Both rates are printed. See docs/exploits.md."""

import collections
import re
from pathlib import Path

import pytest

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.cases import cases_of
from evaluator.judge.ladder import Judge
from evaluator.judge.table import block
from evaluator.judge.text_file import read_program
from evaluator.records import Limits, Mode, Outcome
from evaluator.tasks import catalog
from evaluator.tasks.task import CASES, Array, Task

ROOT = Path(__file__).parents[3]
CANDIDATES = sorted((ROOT / "tests" / "candidates").glob("*.py"))
# Each waits for a limit that another candidate of the default selection waits for, too, or prints for seconds.
SLOW = {
    "ok__prints_verdicts",
    "timeout__flood_of_printf",
    "timeout__grid_of_two_thousand_million",
    "timeout__hundred_thousand_brackets",
    "timeout__sleeps",
    "timeout__spins_on_another_thread",
}
HONEST = sorted((kernels_folder() or Path("no kernels")).glob("*/*.py"))
DEFAULT_TASK = "1_019"  # of candidates too broken to name one

# Endless programs are judged with less patience than the defaults, so that the tests end.
IMPATIENT = Limits(trace_s=2.0, compile_s=2.0, kernel_s=2.0)


@pytest.fixture(scope="module")
def judge():
    with Judge(mode=Mode.QUICK, seed=2024, limits=IMPATIENT) as started:
        yield started


@pytest.fixture(scope="module")
def rates(pytestconfig):
    """Counts (right, all) by kind, printed when the module ends."""
    counts = collections.defaultdict(lambda: [0, 0])
    yield counts
    reporter = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    with pytestconfig.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        for kind, (right, total) in counts.items():
            reporter.write_line(f"\n{kind}: {right} of {total} ({right / total:.1%})")


def count(rates, kind, right):
    rates[kind][0] += right
    rates[kind][1] += 1


def task_of(text):
    first = text.partition("\n")[0]
    return catalog.get(first.removeprefix("# task: ").strip() if first.startswith("# task: ") else DEFAULT_TASK)


def only_case(text):
    """The case that alone shows what is wrong with a program, from its line `# only: ...`; None where it says none."""
    found = re.search(r"^# only: (\w+)$", text, re.MULTILINE)
    return found[1] if found else None


def outcome_of(path):
    return Outcome(path.stem.partition("__")[0])


def slow_where(path):
    return pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])


@pytest.mark.parametrize("path", [slow_where(path) for path in CANDIDATES])
def test_a_program_gets_the_outcome_in_its_name(path, judge, rates):
    text = read_program(path)
    expected = outcome_of(path)
    verdict = judge.check(text, task_of(text), timing=expected is Outcome.WRONG_AFTER_TIMING)
    if expected is Outcome.OK:
        count(rates, "honest programs passed", verdict.ok)
    else:
        count(rates, "bad programs caught", not verdict.ok)
    assert verdict.outcome is expected, block(path.name, verdict)
    assert bool(verdict.message) == (expected is not Outcome.OK)
    assert verdict.speedup is None
    if case := only_case(text):
        assert verdict.message.startswith(f"case {case},"), block(path.name, verdict)


BY_CASE = {case: path for path in CANDIDATES if (case := only_case(read_program(path)))}


def test_every_case_has_a_candidate_that_only_it_catches():
    assert set(BY_CASE) == set(CASES)


@pytest.mark.parametrize("case", [pytest.param(case, marks=pytest.mark.slow) for case in CASES if case != "plain"])
def test_without_its_case_a_candidate_passes(case, judge):
    text = read_program(BY_CASE[case])
    others = [name for name in cases_of(task_of(text)) if name != case]
    verdict = judge.check(text, task_of(text), timing=False, cases=others)
    assert verdict.ok, block(BY_CASE[case].name, verdict)


TWO_OUTPUTS = Task(
    id="positive_and_negative_part",
    name="Positive and negative part",
    family="elementwise",
    source="def forward(nn, x):\n    return nn.relu(x), nn.relu(-x)\n",
    sizes={"cpu": (Array("x", (30, 500), init="normal(0,1)"),)},
)
PARTS = """
import cupy as cp

source = r'''
extern "C" __global__ void part(const float* x, float* out, int n, int sign) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(sign * x[i], 0.0f);
}
'''
part = cp.RawKernel(source, "part")


def forward(x):
    one = cp.empty(x.shape, cp.float32)
    other = cp.empty(x.shape, cp.float32)
    for out, sign in ((one, 1), (other, -1)):
        part(((x.size + 255) // 256,), (256,), (x, out, x.size, sign))
    return one, other
"""


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("", "", Outcome.OK),
        ("other = cp.empty(x.shape, cp.float32)", "other = one", Outcome.WRONG_VALUE),
        ("other = cp.empty(x.shape, cp.float32)", "other = one.reshape(-1).reshape(x.shape)", Outcome.WRONG_VALUE),
        ("return one, other", "return other, one", Outcome.WRONG_VALUE),
        ("return one, other", "return one, x", Outcome.WRONG_VALUE),
        ("return one, other", "return one", Outcome.WRONG_SHAPE),
        ("((one, 1), (other, -1))", "((one, 1),)", Outcome.UNWRITTEN_OUTPUT),
    ],
    ids=["two", "one buffer", "one buffer reshaped", "swapped", "an input", "one", "second unwritten"],
)
def test_every_one_of_several_outputs_is_judged(old, new, outcome, judge):
    verdict = judge.check(PARTS.replace(old, new), TWO_OUTPUTS, timing=False)
    assert verdict.outcome is outcome, block("parts", verdict)


def test_five_megabytes_are_refused(judge, rates):
    verdict = judge.check("# padding\n" * 500_000, catalog.get(DEFAULT_TASK))
    count(rates, "bad programs caught", not verdict.ok)
    assert (verdict.outcome, verdict.rung) == (Outcome.REFUSED, "screen")


@pytest.mark.parametrize(
    "completion",
    ["", "no code at all", "```python\nx = 1\n```\n\n```python\nx = 2\n```", "```python\nimport cupy as cp\n"],
    ids=["empty", "prose", "two", "cut"],
)
def test_a_completion_without_exactly_one_program_is_no_program(completion, judge):
    verdict = judge.check(completion, catalog.get(DEFAULT_TASK), completion=True)
    assert (verdict.outcome, verdict.program_sha256) == (Outcome.NO_PROGRAM, "")


def program_id(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.rotating
@pytest.mark.parametrize("path", HONEST, ids=program_id)
def test_an_honest_program_is_right(path, judge, rates):
    verdict = verdict_of_honest(path, judge, rates, timing=False)
    assert verdict.ok, block(str(path), verdict)


@pytest.mark.slow
@pytest.mark.parametrize("path", HONEST, ids=program_id)
def test_an_honest_program_is_ok_once_timed(path, judge, rates):
    verdict = verdict_of_honest(path, judge, rates, timing=True)
    assert verdict.ok, block(str(path), verdict)


def verdict_of_honest(path, judge, rates, timing):
    """Counted among the honest ones, whatever it is."""
    verdict = judge.check(read_program(path), catalog.get(path.parent.name), timing=timing)
    count(rates, "honest programs passed", verdict.ok)
    return verdict


def test_every_outcome_a_program_can_cause_on_cpu_has_a_candidate():
    """`unstable_timing` and `too_fast` are for cuda; `not_reproduced` and `evaluator_error` are no program's doing."""
    elsewhere = {"ok", "no_program", "unstable_timing", "too_fast", "not_reproduced", "evaluator_error"}
    caused = {str(outcome_of(path)) for path in CANDIDATES} - {"ok"}
    assert caused == {str(outcome) for outcome in Outcome} - elsewhere


def test_what_programs_say_of_a_gpu_are_outcomes():
    """A line `# on a GPU: wrong_value or ok: why`, where the outcome is another one there than in the name."""
    for path in CANDIDATES:
        said = re.findall(r"^# on a GPU: ([^:\n]*)", read_program(path), re.MULTILINE)
        assert all(Outcome(outcome) for line in said for outcome in line.split(" or ")), path.name


def test_the_document_names_every_candidate_and_no_other():
    outcomes = "|".join(Outcome)
    named = set(re.findall(rf"`((?:{outcomes})__\w+)`", (ROOT / "docs" / "exploits.md").read_text(encoding="utf-8")))
    assert named == {path.stem for path in CANDIDATES}
