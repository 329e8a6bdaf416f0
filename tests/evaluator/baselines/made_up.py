"""Records and verdicts with chosen figures."""

from evaluator.baselines.record import Record, Subject, task_sha256
from evaluator.judge.findings import Findings
from evaluator.records import Interval, Mode
from evaluator.tasks import catalog

H200 = "NVIDIA H200"
TASK = catalog.get("1_019")


def subject(baseline="torch", **changes):
    fields = {
        "task": TASK.id,
        "task_sha256": task_sha256(TASK, "kb"),
        "size": "kb",
        "device": "cuda",
        "device_name": H200,
        "baseline": baseline,
        "precision": TASK.precision,
        "versions": {"torch": "2.11.0", "driver": "580.1"},
    }
    return Subject(**{**fields, **changes})


def record(baseline="torch", times=(90.0, 100.0, 110.0), date="2026-11-30T10:00:00+00:00", **changes):
    low, median, high = times
    return Record(
        subject=subject(baseline, **changes), date=date, median_us=median, low_us=low, high_us=high, samples=21,
        clock="events",
    )  # fmt: skip


def failure(baseline="torch", **changes):
    return Record(subject=subject(baseline, **changes), date="2026-11-30T10:00:00+00:00", error="out of memory")


def verdict(speedups=None, **changes):
    fields = {"task": TASK.id, "size": "kb", "device": "cuda", "device_name": H200, "mode": Mode.QUICK}
    if speedups is None:
        speedups = {"eager": Interval(3.0, 2.9, 3.1), "graph": Interval(2.0, 1.9, 2.1)}
    return Findings(**{**fields, "speedups": speedups, **changes}).verdict(None)
