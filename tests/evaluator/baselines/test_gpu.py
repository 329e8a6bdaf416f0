"""Stored baselines on a GPU: each library in its own process, right and timed, and what they say of a program."""

import importlib.util

import pytest

from evaluator.baselines import kinds
from evaluator.baselines.measuring import Measurer
from evaluator.baselines.sampling import Effort
from evaluator.baselines.unpaired import headline, unpaired
from evaluator.judge.baseline import plain_text
from evaluator.judge.ladder import Judge
from evaluator.records import Mode
from evaluator.tasks import catalog

pytestmark = pytest.mark.gpu

COMPILED = [pytest.param(name, marks=pytest.mark.slow) for name in kinds.BASELINES if "compile" in name]


@pytest.fixture(scope="module")
def measurer():
    with Measurer("cuda", "cpu", Effort(budget_s=0.1), deadline_s=280.0) as started:
        yield started


@pytest.mark.parametrize("task_id", ["1_019", "1_023", "1_051", "2_001"])  # 1_051 gives int64, 2_001 convolves
@pytest.mark.parametrize("baseline", ["graph", "xla", "torch", *COMPILED])
def test_a_baseline_is_right_and_timed(baseline, task_id, measurer):
    if (reason := kinds.missing(baseline, "cuda")) is not None:
        pytest.skip(reason)
    record = measurer.measure(catalog.get(task_id), baseline)
    assert record.error is None
    assert record.clock == ("host" if baseline == "xla" else "events")
    assert 1.0 < record.median_us < 1e6
    assert record.subject.device_name
    assert record.subject.versions["driver"] != "unknown"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_verdict_has_unpaired_speedups_on_the_same_device(measurer):
    task = catalog.get("1_023")
    records = [measurer.measure(task, name) for name in ("graph", "torch")]
    with Judge("cuda", mode=Mode.QUICK) as judge:
        verdict = judge.check(plain_text(task.id), task, "cpu")
    found = unpaired(verdict, records)
    assert set(found) == {"torch"}
    assert found["torch"].speedup.low <= found["torch"].speedup.value <= found["torch"].speedup.high
    assert headline(verdict, records).speedup.value <= verdict.speedups["graph"].value
