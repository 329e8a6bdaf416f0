import pytest

from cudal1_jax.contrastive.novelty import streams
from cudal1_jax.contrastive.records import SEED_STEP, Judged
from cudal1_jax.report.iterations import IterationLines
from evaluator.records import Outcome

NAMES = ("empty_like", "zeros_like", "ones_like", "full_like")
PROGRAMS = {name: f"def forward(x):\n    return cp.{name}(x)\n" for name in NAMES}


@pytest.fixture
def judged(verdict):
    rows = [  # step, task, program, speed-up, outcome
        (SEED_STEP, "1_019", "empty_like", 1.0, Outcome.OK),
        (0, "1_019", "zeros_like", 2.0, Outcome.OK),
        (0, "1_019", "empty_like", 1.1, Outcome.OK),
        (0, "1_023", "", None, Outcome.NO_PROGRAM),
        (1, "1_019", "ones_like", 1.5, Outcome.OK),
        (1, "1_019", "zeros_like", 2.0, Outcome.OK),
        (1, "1_019", "full_like", None, Outcome.WRONG_VALUE),
    ]
    return [
        Judged(step, n, task, PROGRAMS.get(name, ""), "", verdict(PROGRAMS.get(name, ""), speedup, outcome, task=task))
        for n, (step, task, name, speedup, outcome) in enumerate(rows)
    ]


def told(lines, judged, step, capsys):
    lines.tell(step, [entry for entry in judged if entry.step <= step], 96.6)
    seen = capsys.readouterr()
    assert seen.out == ""
    return seen.err


def test_a_line_counts_what_is_right_and_new_and_names_the_best_of_its_tasks(judged, capsys):
    lines = IterationLines(5, [])
    assert told(lines, judged, 0, capsys) == (
        "iteration 1 of 5: right: 2 of 3 samples, new and right: 1; best so far: 1_019 2.00 (1.96 to 2.04), 1_023 none;"
        " 97 s\n"
    )
    assert told(lines, judged, 1, capsys) == (  # ones_like alone: the wrong one is new and does not count
        "iteration 2 of 5: right: 2 of 3 samples, new and right: 1; best so far: 1_019 2.00 (1.96 to 2.04); 97 s\n"
    )


def test_a_run_that_goes_on_tells_the_same(judged, capsys):
    whole = IterationLines(5, [])
    told(whole, judged, 0, capsys)
    assert told(IterationLines(5, []), judged, 1, capsys) == told(whole, judged, 1, capsys)


def test_programs_that_were_known_before_the_run_are_not_new(judged, capsys):
    assert "new and right: 0" in told(IterationLines(5, streams(judged)), judged, 0, capsys)
