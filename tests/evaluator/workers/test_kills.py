"""Processes that are killed at any moment: no verdict is lost or doubled, and nothing is left running."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.judge.baseline import plain_text
from evaluator.judge.job import Job
from evaluator.tasks import catalog
from evaluator.workers.local import LocalPool
from evaluator.workers.pool import stream

HERE = Path(__file__).parent


def kill_one(pool, rng):
    os.kill(rng.choice(pool._slots).worker._child.pid, signal.SIGKILL)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_workers_killed_at_random_moments_cost_and_double_nothing(scripted, job, seed):
    rng, seen, processes = random.Random(seed), [], set()
    with LocalPool(3, make_judge=scripted.Obedient) as pool:
        for done, verdict in stream(pool, (job(key, f"sleep {rng.random() / 50}") for key in range(80))):
            assert verdict.ok, verdict.message
            seen.append(done.key)
            processes.add(verdict.seeds[0])
            # A job that was lost goes first: it has ended long before ten others have, so none is lost twice.
            if len(seen) % 10 == 0:
                kill_one(pool, rng)
    assert sorted(seen) == list(range(80))
    assert len(processes) > 3


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_a_worker_with_a_dozen_jobs_killed_at_random_moments_costs_and_doubles_none(scripted, job, seed):
    rng, seen, processes = random.Random(seed), [], set()
    with LocalPool(1, {"device": "cuda"}, compilers=3, make_judge=scripted.Obedient) as pool:
        assert pool.capacity == 12
        for done, verdict in stream(pool, (job(key, f"sleep {rng.random() / 50}") for key in range(60))):
            assert verdict.ok, verdict.message
            seen.append(done.key)
            processes.add(verdict.seeds[0])
            if len(seen) % 20 == 10:  # those that were lost come first, one by one: none is lost alone twice
                kill_one(pool, rng)
    assert sorted(seen) == list(range(60))
    assert len(processes) > 2


@pytest.mark.slow
def test_real_judges_killed_at_random_moments_cost_nothing_and_leave_nothing(running, wait_until):
    rng, children, seen = random.Random(0), set(), []
    text = plain_text("1_019")
    with LocalPool(2, {"mode": "quick"}) as pool:
        for key in range(12):
            pool.submit(Job(key=key, text=text, task=catalog.get("1_019"), timing=False))
        killed = 0
        while pool.outstanding:
            children |= descendants(os.getpid())
            for done, verdict in pool.poll(timeout_s=rng.random()):
                assert verdict.ok, verdict.message
                seen.append(done.key)
            if killed < len(seen) // 4:
                kill_one(pool, rng)
                killed += 1
    assert sorted(seen) == list(range(12))
    assert killed >= 2
    assert len(children) > 4  # judges, and what they start
    wait_until(lambda: not any(map(running, children)))


def test_workers_end_with_a_parent_that_is_killed(running, wait_until):
    script = """
import conftest, scripted_judges
from evaluator.judge.job import Job
from evaluator.workers.local import LocalPool
pool = LocalPool(2, make_judge=scripted_judges.Obedient)
pool.submit(Job(key=0, text="child", task=conftest.TASK))
print(*next(pool.completed())[1].seeds, flush=True)
pool.submit(Job(key=1, text="hang", task=conftest.TASK))
pool.submit(Job(key=2, text="hang", task=conftest.TASK))
pool.poll(0.2)
print(*[slot.worker._child.pid for slot in pool._slots], flush=True)
input()
"""
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        _, _, child = map(int, parent.stdout.readline().split())
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(map(running, [child, *workers]))
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(running, [child, *workers])))


def descendants(pid):
    """Processes below one, by what Linux tells of their threads."""
    found = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = {int(child) for child in task.read_text().split()}
        except OSError:  # it has just ended
            continue
        found |= below.union(*map(descendants, below))
    return found
