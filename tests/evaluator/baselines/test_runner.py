"""What is timed on a GPU: nothing but the call, after the cache was emptied. The workbench is scripted."""

import dataclasses

import pytest

from evaluator.baselines.runner import event_us, flushed_host_us, host_us


@dataclasses.dataclass
class ScriptedBench:
    """Device and timer in one, which write down what is asked of them."""

    log: list

    @property
    def timer(self):
        return self

    @property
    def device(self):
        return self

    def start(self):
        self.log.append("flush and event")

    def stop(self):
        self.log.append("event")

    def wait(self, deadline_s):
        self.log.append("wait")

    def collect(self, deadline_s):
        self.log.append("collect")
        return [42.0]


def test_events_stand_directly_around_the_call():
    bench = ScriptedBench([])
    assert event_us(bench, lambda: bench.log.append("call")) == 42.0
    assert bench.log == ["flush and event", "call", "event", "collect"]


def test_the_host_waits_for_the_flush_before_its_clock_starts(monkeypatch):
    bench = ScriptedBench([])
    ticks = iter([1_000_000, 1_005_500])

    def tick():
        bench.log.append("tick")
        return next(ticks)

    monkeypatch.setattr("evaluator.baselines.runner.time.perf_counter_ns", tick)
    assert flushed_host_us(bench, lambda: bench.log.append("call")) == pytest.approx(5.5)
    assert bench.log == ["flush and event", "wait", "tick", "call", "tick", "event", "collect"]


def test_a_call_that_fails_is_no_time():
    def fail():
        raise MemoryError

    with pytest.raises(MemoryError):
        host_us(fail)
