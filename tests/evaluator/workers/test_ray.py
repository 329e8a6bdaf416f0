"""The pool on a real Ray cluster: a head and nodes that the tests start on this machine, and kill."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evaluator.records import Outcome
from evaluator.workers import ray_pool
from evaluator.workers.pool import PoolError, stream
from evaluator.workers.ray_pool import RayPool

pytestmark = [pytest.mark.ray, pytest.mark.slow]
HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def cluster():
    """A head without CPUs, so that every actor is on a node that can be killed."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


@pytest.fixture
def joined(cluster):
    import ray

    environment = {"env_vars": {"PYTHONPATH": HERE}}
    ray.init(address=cluster.address, log_to_driver=False, runtime_env=environment)
    yield cluster
    ray.shutdown()
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node)


@pytest.fixture
def pool_of(joined, scripted):
    pools = []

    def make(**options):
        pools.append(RayPool(make_judge=scripted.Obedient, **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def test_a_node_killed_midway_costs_no_verdict_and_doubles_none(pool_of, joined, job, scripted):
    nodes = [joined.add_node(num_cpus=2) for _ in range(2)]
    pool = pool_of(cpus=1)
    losses = watched(pool)
    # When the eighth verdict is there, at least three of four actors hold one of the next four jobs, which are long.
    jobs = [job(key, "sleep 5" if 8 <= key < 12 else "sleep 0.1") for key in range(40)]
    processes, seen = set(), []
    for done, verdict in stream(pool, iter(jobs)):
        assert verdict.ok
        seen.append(done.key)
        processes.add(verdict.seeds[0])
        if len(seen) == 8:
            assert len(pool._slots) == 4
            joined.remove_node(nodes[0], allow_graceful=False)
    assert sorted(seen) == list(range(40))
    assert len(processes) >= 3  # work was on both nodes
    assert losses


def watched(pool):
    """The jobs that lose a worker from now on."""
    lose, lost = pool._lose, []

    def watching(slot, *reason):
        lost.extend(held.queued.job.text for held in slot.held.values())
        return lose(slot, *reason)

    pool._lose = watching
    return lost


def test_a_node_that_joins_later_is_used(pool_of, joined, job, monkeypatch):
    monkeypatch.setattr(ray_pool, "_LOOK_AGAIN_S", 0.2)
    joined.add_node(num_cpus=1)
    pool = pool_of()
    pool.submit(job("endless", "hang"))
    assert pool.poll(0.0) == []
    pool.submit(job("later"))
    joined.add_node(num_cpus=1)
    done, verdict = next(pool.completed())
    assert (done.key, verdict.ok) == ("later", True)


def test_what_a_program_does_to_an_actor_is_what_it_does_to_a_process(pool_of, joined, job, tmp_path):
    joined.add_node(num_cpus=1)
    pool = pool_of()
    pool.submit(job("deadly", "die"))
    pool.submit(job("unlucky", f"once {tmp_path / 'died'}"))
    pool.submit(job("endless", "hang", deadline_s=1.0))
    pool.submit(job("next"))
    found = {done.key: verdict for done, verdict in pool.completed()}
    assert found["deadly"].outcome is Outcome.EVALUATOR_ERROR
    assert "2 times" in found["deadly"].message
    assert found["unlucky"].ok
    assert found["endless"].outcome is Outcome.TIMEOUT
    assert found["next"].ok


def test_each_actor_on_cuda_has_a_gpu_of_its_own(pool_of, joined, job, tmp_path):
    joined.add_node(num_cpus=2, num_gpus=2)
    pool = pool_of(judge_options={"device": "cuda"})
    for key in range(2):
        pool.submit(job(key, f"meet {tmp_path}"))
    assert {verdict.message for _, verdict in pool.completed()} == {"0", "1"}


def test_children_of_an_actor_end_with_it(pool_of, joined, job, running, wait_until):
    joined.add_node(num_cpus=1)
    pool = pool_of()
    pool.submit(job("parent", "child"))
    ((_, verdict),) = pool.completed()
    child = verdict.seeds[-1]
    assert running(child)
    pool.close()
    wait_until(lambda: not running(child))


def test_actors_end_with_a_driver_that_is_killed(joined, running, wait_until):
    joined.add_node(num_cpus=1)
    environment = {"env_vars": {"PYTHONPATH": HERE}}
    script = textwrap.dedent(f"""
        import ray
        ray.init(address={joined.address!r}, log_to_driver=False, runtime_env={environment})
        import scripted_judges, conftest
        from evaluator.judge.job import Job
        from evaluator.workers.ray_pool import RayPool
        pool = RayPool(make_judge=scripted_judges.Obedient)
        pool.submit(Job(key=0, text="child", task=conftest.TASK))
        print(*next(pool.completed())[1].seeds, flush=True)
        input()
        """)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment["env_vars"],
    ) as driver:
        actor, _, child = map(int, driver.stdout.readline().split())
        assert running(actor)
        driver.send_signal(signal.SIGKILL)
    wait_until(lambda: not running(actor) and not running(child))


def test_a_node_with_another_version_is_refused(pool_of, joined, job, monkeypatch):
    joined.add_node(num_cpus=1)
    pool = pool_of()
    pool.submit(job(0))
    monkeypatch.setattr(ray_pool, "EVALUATOR_VERSION", "9.9")
    with pytest.raises(PoolError, match=r"has evaluator 0\.1\.0 .* this process 9\.9 .* install the same version"):
        list(pool.completed())


def test_where_no_cluster_is_it_says_so():
    with pytest.raises(PoolError, match=r"no Ray cluster at '127\.0\.0\.1:1' .*ray start --head"):
        RayPool(address="127.0.0.1:1")
