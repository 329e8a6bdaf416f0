"""What the judging commands show of a store: beside a verdict, never in it."""

import json

import pytest

from evaluator.baselines import beside
from evaluator.baselines.store import Store, WrongFile
from evaluator.commands import command_line
from evaluator.judge import verdict_json
from evaluator.records import Fault, Interval, Outcome, Rung, Verdict
from evaluator.tasks import catalog


@pytest.fixture
def records(made_up):
    return [
        made_up.record("graph", (50.0, 50.0, 50.0)),
        made_up.record("xla", (79.0, 80.0, 81.0)),
        made_up.record("torch", (40.0, 40.0, 40.0)),
    ]


def test_json_has_further_fields_behind_those_of_the_verdict(made_up, records):
    verdict = made_up.verdict()
    plain, line = json.loads(verdict_json.to_json(verdict)), beside.to_json(verdict, records)
    seen = json.loads(line)
    assert list(seen) == [*plain, "unpaired", "headline"]
    assert {name: seen[name] for name in plain} == plain
    assert verdict_json.from_json(line) == verdict
    assert list(seen["unpaired"]) == ["xla", "torch"]
    assert seen["unpaired"]["xla"]["value"] == pytest.approx(3.2)
    assert seen["headline"]["baseline"] == "torch"
    assert seen["headline"]["paired"] is False
    assert seen["headline"]["value"] == pytest.approx(1.6)
    assert beside.to_json(verdict, []) == verdict_json.to_json(verdict)


def test_an_interval_without_end_is_strict_json(made_up, records):
    verdict = made_up.verdict({"graph": Interval(2.0, 1.0, float("inf"))})
    line = beside.to_json(verdict, records)
    seen = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert seen["unpaired"]["torch"]["high"] == "inf"


def test_a_verdict_that_is_not_ok_has_nothing_beside_it(made_up, records):
    verdict = made_up.verdict({})
    assert json.loads(beside.to_json(verdict, records))["headline"] is None
    assert beside.lines(verdict, records) == ""


def test_the_block_names_each_baseline_and_the_smallest(made_up, records):
    text = beside.lines(made_up.verdict(), records)
    assert "unpaired speed-up over xla: 3.200" in text
    assert "stored 2026-11-30, timed by events" in text
    assert text.splitlines()[-1].startswith("  headline, the smallest of all: 1.600")
    assert text.endswith("over torch (unpaired)")


def test_a_store_that_does_not_fit_is_said_and_leaves_the_paired_headline(made_up, records):
    text = beside.lines(made_up.verdict(device_name="NVIDIA A100"), records)
    assert "no unpaired speed-up" in text
    assert text.endswith("over graph (paired)")


def test_the_table_and_the_summary_take_the_smallest(made_up, records):
    fast = made_up.verdict({"eager": Interval(1.3, 1.2, 1.4), "graph": Interval(4.0, 3.9, 4.1)})
    failed = made_up.verdict({})
    rows = [("a.py", made_up.verdict()), ("b.py", fast), ("c.py", failed)]
    heading, _, first, second, note = beside.table(rows, records).splitlines()
    assert heading.split() == ["program", "task", "headline", "over", "xla*", "torch*"]
    assert first.split() == ["a.py", "1_019", "1.60", "torch*", "3.20", "1.60"]
    assert second.split() == ["b.py", "1_019", "1.30", "eager", "6.40", "3.20"]
    assert note.startswith("* unpaired")
    assert "geometric mean 1.44" in beside.summary([verdict for _, verdict in rows[:2]], records)  # sqrt(1.6 x 1.3)


def test_a_fault_counts_as_a_miss_in_the_summary(made_up, records):
    fault = Fault(Outcome.WRONG_VALUE, Rung.CORRECTNESS, "seen 1, expected 2")
    missed = Verdict(**{**vars(made_up.verdict({})), "outcome": fault.outcome, "rung": fault.rung})
    assert "1 of 2 ok" in beside.summary([made_up.verdict(), missed], records)


def test_the_emulator_is_refused_with_the_reason(made_up, records, tmp_path, capsys):
    path = tmp_path / "b.jsonl"
    with Store(path) as store:
        for record in records:
            store.add(record)
    for command in (("check", __file__, "--task=1_019"), ("verify", str(tmp_path))):
        assert command_line.main([*command, f"--baselines={path}"]) == 2
        assert "not comparable with that of a library on a CPU" in capsys.readouterr().err
    assert len(beside.stored(path, "cuda", catalog.TASKS)) == 3


def test_a_store_without_times_of_the_device_says_what_measures_them(made_up, tmp_path):
    path = tmp_path / "b.jsonl"
    with Store(path) as store:
        store.add(made_up.record("xla", device="cpu", device_name="EPYC"))
    with pytest.raises(WrongFile, match="baselines --device=cuda --out="):
        beside.stored(path, "cuda", catalog.TASKS)
