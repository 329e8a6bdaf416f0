"""What was found out about the benchmark's outputs is said in the catalog."""

import json
import pathlib

import pytest

from evaluator.tasks import catalog

FACTS = json.loads((pathlib.Path(__file__).parents[2] / "data" / "kernelbench.json").read_text())["tasks"]
# A large product whose result is folded at once: a smaller one gives the same.
COLLAPSING = ["2_014", "2_018", "2_042", "2_044", "2_051", "2_077"]


def found(*names):
    return [task_id for task_id, fact in FACTS.items() if set(names) & set(fact.get("findings", ()))]


def noted(task_id, word):
    return any(note.startswith(word) for note in catalog.get(task_id).notes)


@pytest.mark.parametrize("task_id", found("EXACT", "NUMERIC", "BELOW-TOL"))
def test_a_task_whose_outputs_say_nothing_is_degenerate(task_id):
    assert catalog.get(task_id).degenerate_at("kb") or noted(task_id, "Nearly degenerate")


def test_no_other_task_is_degenerate_at_kb():
    flagged = {task.id for task in catalog.TASKS.values() if task.degenerate_at("kb")}
    assert flagged == set(found("EXACT", "NUMERIC", "BELOW-TOL")) - {"2_093"}


@pytest.mark.parametrize("task_id", found("INSENSITIVE"))
def test_a_task_whose_inputs_hardly_matter_says_so(task_id):
    assert noted(task_id, "Insensitive")


@pytest.mark.parametrize("task_id", found("ILL-CONDITIONED"))
def test_a_task_that_makes_rounding_large_says_so(task_id):
    assert noted(task_id, "Ill-conditioned")


@pytest.mark.parametrize("task_id", COLLAPSING)
def test_a_task_whose_algebra_shrinks_says_how(task_id):
    assert catalog.get(task_id).collapses
