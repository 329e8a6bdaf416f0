"""Tables: what each number counts."""

from evaluator.mutants import report
from evaluator.mutants.exposure import Exposure
from evaluator.mutants.trial import State, Trial
from evaluator.records import Outcome

BY_RAMP = Exposure("ramp", 5, "random", "value", 3.25)


def trial(number, state, outcome=None, exposure=None, kind="tie_breaking"):
    return Trial(str(number), f"{number}.py", "1_019", kind, 7, "before", "after", state, outcome, "", exposure, 0.1)


TRIALS = [
    trial(1, State.REFUSED, Outcome.COMPILE_ERROR),
    trial(2, State.SAME_CODE),
    trial(3, State.TRIED, Outcome.OK),  # neither exposed nor caught
    trial(4, State.TRIED, Outcome.OK, BY_RAMP),  # survives
    trial(5, State.TRIED, Outcome.WRONG_VALUE, BY_RAMP),
    trial(6, State.TRIED, Outcome.OUT_OF_BOUNDS),  # the judge alone exposes it
    trial(7, State.TRIED, Outcome.WRONG_VALUE, BY_RAMP, kind="sum_in_half"),
]


def test_counts_add_up():
    counted = report.count(TRIALS, derived=20)
    assert (counted.derived, counted.tried, counted.refused, counted.same_code) == (20, 7, 1, 1)
    assert (counted.unexposed, counted.exposed, counted.caught, counted.survivors) == (1, 4, 3, 1)
    assert counted.outcomes == {"wrong_value": 2, "out_of_bounds": 1}
    assert counted.tried == counted.refused + counted.same_code + counted.unexposed + counted.exposed


def test_the_table_has_a_line_for_each_kind_and_one_for_all():
    lines = report.table(TRIALS, {"tie_breaking": 15, "sum_in_half": 4, "wrong_axis": 1}).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["tie_breaking", "sum_in_half", "wrong_axis", "all"]
    assert lines[2].split()[1:9] == ["15", "6", "1", "1", "1", "3", "2", "66.7%"]
    assert lines[4].split()[1:] == ["1", "0", "0", "0", "0", "0", "0", "-"]
    assert lines[5].split(maxsplit=8)[8] == "75.0%   wrong_value 2, out_of_bounds 1"


def test_the_summary_gives_the_denominator_and_the_search_s_own_strength():
    text = report.summary(TRIALS)
    assert "7 mutants of 7 programs tried; 4 of the 5 that ran are exposed, 1 are not" in text
    assert "caught: 3 of 4 exposed (75.00%), 1 survive" in text
    assert "the search alone exposes 3, of which the judge catches 2; the judge catches 1 that" in text


def test_survivors_are_listed_with_the_input_that_exposed_them():
    text = report.survivors(TRIALS)
    assert text.splitlines() == [
        "4.py, line 7: tie_breaking (4)",
        "  - before",
        "  + after",
        "  exposed by draw 5 (ramp, random order): value, 3.25 times the bound",
    ]
