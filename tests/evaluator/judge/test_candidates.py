"""Bad programs get the outcome in their name; honest ones get ok. Both rates are printed."""

import collections
from pathlib import Path

import pytest

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.ladder import Judge
from evaluator.judge.table import block
from evaluator.judge.text_file import read_program
from evaluator.records import Limits, Mode, Outcome
from evaluator.tasks import catalog

CANDIDATES = sorted((Path(__file__).parents[2] / "candidates").glob("*.py"))
HONEST = sorted((kernels_folder() or Path("no kernels")).glob("*/*.py"))
SAMPLE = {"1_012", "1_019", "1_023", "1_047", "1_051", "1_089", "1_094", "2_014"}  # one task of each family
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


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_bad_program_gets_the_outcome_in_its_name(path, judge, rates):
    text = read_program(path)
    expected = Outcome(path.stem.partition("__")[0])
    verdict = judge.check(text, task_of(text), timing=expected is Outcome.WRONG_AFTER_TIMING)
    count(rates, "bad programs caught", not verdict.ok)
    assert verdict.outcome is expected, block(path.name, verdict)
    assert verdict.message
    assert verdict.speedup is None


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


@pytest.mark.parametrize(
    "path", [p for p in HONEST if p.parent.name in SAMPLE], ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_an_honest_program_of_each_family_is_right(path, judge, rates):
    assert honest(path, judge, rates, timing=False).ok


@pytest.mark.slow
@pytest.mark.parametrize("path", HONEST, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_honest_program_is_ok(path, judge, rates):
    assert honest(path, judge, rates, timing=True).ok


def honest(path, judge, rates, timing):
    """The verdict on a program of kernels/; AssertionError that shows it where it is not ok."""
    verdict = judge.check(read_program(path), catalog.get(path.parent.name), timing=timing)
    count(rates, "honest programs passed", verdict.ok)
    assert verdict.ok, block(str(path), verdict)
    return verdict


def test_every_outcome_a_program_can_cause_on_cpu_has_a_candidate():
    """`unstable_timing` and `too_fast` are for cuda; `not_reproduced` and `evaluator_error` are no program's doing."""
    elsewhere = {"ok", "no_program", "unstable_timing", "too_fast", "not_reproduced", "evaluator_error"}
    assert {path.stem.partition("__")[0] for path in CANDIDATES} == {str(outcome) for outcome in Outcome} - elsewhere
