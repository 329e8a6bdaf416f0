"""The two sides of the benchmark: who is on which, and that no near-copy crosses."""

import ast
import collections
import re

import pytest

from evaluator.tasks import catalog, split

IN_TRAINING = {"scan", "attention"}  # all near-copies of each other, or alone


def operations(source):
    """Names of the functions and operators of a reference, dimensions and constants aside: equal for near-copies."""
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    grouped = ["groups" for call in calls if any(keyword.arg == "groups" for keyword in call.keywords)]
    operators = [type(node.op).__name__ for node in nodes if isinstance(node, ast.BinOp)]
    return frozenset(re.sub(r"\dd$", "", name) for name in (*(call.func.attr for call in calls), *grouped, *operators))


def test_a_fifth_of_the_benchmark_is_held_out():
    assert len(catalog.TASKS) == 250
    assert len(split.HELD_OUT) == 50
    assert set(catalog.TASKS) >= split.HELD_OUT


@pytest.mark.parametrize("family", sorted({task.family for task in catalog.TASKS.values()} - IN_TRAINING))
def test_every_family_is_on_both_sides_and_mostly_in_training(family):
    sides = [split.held_out(task) for task in catalog.TASKS.values() if task.family == family]
    assert 0 < sum(sides) <= len(sides) / 2


@pytest.mark.parametrize("group", split.CLOSE, ids=min)
def test_near_copies_are_on_one_side(group):
    assert group <= set(catalog.TASKS)
    assert group <= split.HELD_OUT or not group & split.HELD_OUT


def test_no_task_is_in_two_groups():
    counts = collections.Counter(task_id for group in split.CLOSE for task_id in group)
    assert max(counts.values()) == 1


def test_tasks_made_of_the_same_operations_are_on_one_side():
    by_operations = collections.defaultdict(set)
    for task in catalog.TASKS.values():
        by_operations[operations(task.source)].add(split.held_out(task))
    assert [names for names, sides in by_operations.items() if len(sides) > 1] == []
