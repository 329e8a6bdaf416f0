"""The pool: order of completion, lost workers, deadlines. What workers run is scripted."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from evaluator.devices.cuda import machine
from evaluator.devices.cuda.machine import Driver, Gpu
from evaluator.records import Outcome
from evaluator.workers.local import LocalPool

HERE = Path(__file__).parent


@pytest.fixture
def pool_of(scripted):
    pools = []

    def make(workers, **options):
        pools.append(LocalPool(workers, make_judge=scripted.Obedient, **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def test_every_job_comes_back_once_with_its_key(pool_of, job):
    pool = pool_of(2)
    for key in range(20):
        pool.submit(job((key, "sample")))
    results = list(pool.completed())
    assert sorted(done.key for done, _ in results) == [(key, "sample") for key in range(20)]
    assert all(verdict.ok for _, verdict in results)
    assert pool.outstanding == 0
    assert list(pool.completed()) == []


def test_results_come_in_the_order_in_which_they_end(pool_of, job, tmp_path):
    pool = pool_of(2)
    pool.submit(job("slow", f"await {tmp_path / 'quick'}"))
    pool.submit(job("quick"))
    order = []
    for done, _ in pool.completed():
        order.append(done.key)
        (tmp_path / done.key).touch()
    assert order == ["quick", "slow"]


def test_work_submitted_while_results_are_read_is_read_too(pool_of, job):
    pool = pool_of(1)
    pool.submit(job(0))
    seen = []
    for done, _ in pool.completed():
        seen.append(done.key)
        if done.key < 3:
            pool.submit(job(done.key + 1))
    assert seen == [0, 1, 2, 3]


def test_a_worker_that_dies_is_replaced_and_its_job_judged_again(pool_of, tmp_path, job):
    pool = pool_of(1)
    pool.submit(job("unlucky", f"once {tmp_path / 'died'}"))
    pool.submit(job("next"))
    results = {done.key: verdict for done, verdict in pool.completed()}
    assert results["unlucky"].ok
    assert results["next"].ok


def test_a_job_that_kills_two_workers_is_an_evaluator_error_and_the_rest_goes_on(pool_of, job):
    pool = pool_of(1)
    pool.submit(job("deadly", "die"))
    pool.submit(job("next"))
    results = {done.key: verdict for done, verdict in pool.completed()}
    assert results["deadly"].outcome is Outcome.EVALUATOR_ERROR
    assert "died (SIGKILL), 2 times" in results["deadly"].message
    assert results["next"].ok


def test_a_worker_beyond_its_deadline_is_replaced(pool_of, job):
    pool = pool_of(1, deadline_s=0.4)
    pool.submit(job("endless", "hang"))
    ((_, verdict),) = pool.completed()
    assert verdict.outcome is Outcome.TIMEOUT
    assert "no verdict within 0.4 s" in verdict.message


def test_an_idle_worker_that_died_is_replaced_when_work_comes(pool_of, job):
    pool = pool_of(1)
    os.kill(pool._slots[0].worker._child.pid, signal.SIGKILL)
    pool._slots[0].worker._child._process.wait()
    pool.submit(job("later"))
    assert [verdict.ok for _, verdict in pool.completed()] == [True]


def test_jobs_are_spread_over_workers(pool_of, job):
    pool = pool_of(2)
    for key in range(4):
        pool.submit(job(key, "sleep 0.5"))
    assert len({verdict.seeds for _, verdict in pool.completed()}) == 2


@pytest.mark.parametrize("workers", [0, -1])
def test_a_pool_without_workers_is_refused(workers):
    with pytest.raises(ValueError, match=f"seen {workers} workers"):
        LocalPool(workers)


def test_a_pool_that_nobody_closed_does_not_hold_up_the_exit(tmp_path, running, wait_until):
    script = tmp_path / "forgetful.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(HERE)!r})
        import scripted_judges
        from evaluator.workers.local import LocalPool

        if __name__ == "__main__":
            pool = LocalPool(1, make_judge=scripted_judges.Obedient)
            print(pool._slots[0].worker._child.pid)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    wait_until(lambda: not running(int(done.stdout)))


@pytest.mark.parametrize(("visible", "expected"), [(None, {"0", "1"}), ("5,3", {"5", "3"})])
def test_each_worker_on_cuda_has_a_gpu_of_its_own(pool_of, job, tmp_path, monkeypatch, visible, expected):
    has_gpus(monkeypatch, 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    pool = pool_of(2, judge_options={"device": "cuda"})
    for key in range(2):
        pool.submit(job(key, f"meet {tmp_path}"))
    assert {verdict.message for _, verdict in pool.completed()} == expected


@pytest.mark.parametrize("gpus", [0, 1])
def test_more_workers_than_gpus_are_refused(gpus, monkeypatch):
    has_gpus(monkeypatch, gpus)
    with pytest.raises(ValueError, match=f"seen 2 workers for device cuda and {gpus} GPUs"):
        LocalPool(2, {"device": "cuda"})


def has_gpus(monkeypatch, count):
    monkeypatch.setattr(machine, "driver", lambda: Driver((13, 0), (Gpu("NVIDIA H200", 90, 1 << 37),) * count))


def test_judges_that_cannot_be_made_are_an_error_of_ours(pool_of, job):
    pool = pool_of(2, judge_options={"fails": True})
    pool.submit(job(0))
    ((_, verdict),) = pool.completed()
    assert verdict.outcome is Outcome.EVALUATOR_ERROR
    assert "exit code 7" in verdict.message


def test_another_thread_can_wake_a_poll(pool_of):
    pool = pool_of(1)
    while pool._slots[0].device_name is None:
        pool.poll()
    threading.Timer(0.1, pool.wake).start()
    assert pool.poll(timeout_s=None) == []  # which would wait for ever
    pool.close()
    pool.wake()  # and does no harm
