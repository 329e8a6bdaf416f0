"""Speed-ups over stored baselines: hand-computed, and never from times that are not of the same work and device."""

import dataclasses
import math

import pytest

from evaluator.baselines.unpaired import headline, unpaired, widened
from evaluator.judge.summary import summarise
from evaluator.records import Interval


def test_it_is_the_speedup_over_graph_times_the_ratio_of_stored_times(made_up):
    records = [made_up.record("graph", (50.0, 50.0, 50.0)), made_up.record("torch", (80.0, 80.0, 80.0))]
    found = unpaired(made_up.verdict(), records)
    assert list(found) == ["torch"]
    # 2.0 x 80 / 50; the other way round it would be 1.25. Exact stored times leave the paired interval's own width.
    assert found["torch"].speedup.value == pytest.approx(3.2)
    assert found["torch"].speedup.low == pytest.approx(1.9 * 1.6)
    assert found["torch"].speedup.high == pytest.approx(2.1 * 1.6)
    assert found["torch"].stored is records[1]
    assert found["torch"].graph is records[0]


def test_the_relative_widths_add_up_in_quadrature(made_up):
    def around(value, share):
        return value * math.exp(-share), value, value * math.exp(share)

    low, value, high = around(2.0, 0.02)
    verdict = made_up.verdict({"graph": Interval(value, low, high)})
    records = [made_up.record("graph", around(50.0, 0.06)), made_up.record("torch", around(80.0, 0.03))]
    speedup = unpaired(verdict, records)["torch"].speedup
    # sqrt(2^2 + 3^2 + 6^2) = 7 %; a plain sum would give 11 %
    assert math.log(speedup.high / speedup.value) == pytest.approx(0.07)
    assert math.log(speedup.value / speedup.low) == pytest.approx(0.07)


def test_the_upper_end_of_graph_lowers_the_lower_end(made_up):
    verdict = made_up.verdict({"graph": Interval(2.0, 2.0, 2.0)})
    records = [made_up.record("graph", (50.0, 50.0, 55.0)), made_up.record("torch", (80.0, 80.0, 80.0))]
    speedup = unpaired(verdict, records)["torch"].speedup
    assert speedup.low == pytest.approx(3.2 / 1.1)
    assert speedup.high == pytest.approx(3.2)


@pytest.mark.parametrize(
    "change",
    [
        {"device_name": "NVIDIA A100"},
        {"size": "kb_v0"},
        {"task": "1_020"},
        {"device": "cpu"},
        {"precision": "tf32"},
        {"task_sha256": "0" * 64},
        {"versions": {"torch": "2.11.0", "driver": "570.2"}},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("which", ["torch", "graph", "both"])
def test_times_of_other_work_or_of_another_device_are_never_used(made_up, change, which):
    apart = {"graph": change if which != "torch" else {}, "torch": change if which != "graph" else {}}
    records = [made_up.record(name, **changes) for name, changes in apart.items()]
    own = change.keys() & {"device_name", "size", "task", "device"}
    usable = which == "both" and not own  # the two still fit together
    assert bool(unpaired(made_up.verdict(), records)) is usable


def test_a_verdict_of_an_unknown_model_is_compared_with_nothing(made_up):
    records = [made_up.record(name, device_name="") for name in ("graph", "torch")]
    assert unpaired(made_up.verdict(device_name=""), records) == {}


def test_without_a_time_of_graph_there_is_no_ratio(made_up):
    assert unpaired(made_up.verdict(), [made_up.record("torch")]) == {}
    assert unpaired(made_up.verdict(), [made_up.record("torch"), made_up.failure("graph")]) == {}
    both = [made_up.record("graph"), made_up.record("torch")]
    assert unpaired(made_up.verdict({"plain": Interval(2.0, 1.9, 2.1)}), both) == {}
    assert unpaired(made_up.verdict({}), both) == {}


def test_a_failure_is_no_baseline(made_up):
    records = [made_up.record("graph"), made_up.failure("torch"), made_up.record("xla")]
    assert list(unpaired(made_up.verdict(), records)) == ["xla"]


def test_the_newest_time_counts(made_up):
    old = made_up.record("torch", (10.0, 10.0, 10.0), "2026-11-01T10:00:00+00:00")
    new = made_up.record("torch", (80.0, 80.0, 80.0), versions={"torch": "2.12.0", "driver": "580.1"})
    graphs = [
        made_up.record("graph", (50.0, 50.0, 50.0)),
        made_up.record("graph", (1.0, 1.0, 1.0), "2026-10-01T10:00:00+00:00"),
    ]
    for records in ([old, new, *graphs], [*reversed(graphs), new, old]):
        assert unpaired(made_up.verdict(), records)["torch"].speedup.value == pytest.approx(3.2)


def test_the_emulators_verdicts_are_refused(made_up):
    with pytest.raises(ValueError, match=r"not comparable .* --device=cuda"):
        unpaired(made_up.verdict(device="cpu"), [made_up.record("graph"), made_up.record("torch")])


def test_the_headline_is_the_smallest_over_paired_and_stored(made_up):
    graph = made_up.record("graph", (50.0, 50.0, 50.0))
    slow, fast = made_up.record("xla", (80.0, 80.0, 80.0)), made_up.record("torch", (40.0, 40.0, 40.0))
    least = headline(made_up.verdict(), [graph, slow, fast])
    assert (least.baseline, least.paired) == ("torch", False)
    assert least.speedup.value == pytest.approx(1.6)
    least = headline(made_up.verdict(), [graph, slow])
    assert (least.baseline, least.paired, least.speedup.value) == ("graph", True, 2.0)
    assert headline(made_up.verdict({}), [graph, slow]) is None


def test_a_cpu_verdict_has_the_headline_of_its_paired_baseline(made_up):
    verdict = made_up.verdict({"plain": Interval(1.5, 1.4, 1.6)}, device="cpu")
    assert headline(verdict, [made_up.record("graph"), made_up.record("torch")]).baseline == "plain"


def test_the_reward_knows_nothing_of_stored_times(made_up):
    verdict = dataclasses.replace(made_up.verdict(), speedup=2.0)
    records = [made_up.record("graph", (50.0, 50.0, 50.0)), made_up.record("torch", (40.0, 40.0, 40.0))]
    wide = widened(verdict, unpaired(verdict, records))
    assert wide.speedup == verdict.speedup == 2.0
    assert set(verdict.speedups) == {"eager", "graph"}
    assert summarise([wide]).successes.geomean == pytest.approx(1.6)
