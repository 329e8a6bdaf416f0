"""Pools on real GPUs: each worker has its own, and says which model it is."""

import dataclasses

import pytest

from evaluator.devices.cuda import machine
from evaluator.judge.baseline import plain_text
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.tasks import catalog
from evaluator.workers.local import LocalPool
from evaluator.workers.ray_pool import RayPool

pytestmark = pytest.mark.gpu
TASK = "1_019"
OPTIONS = {"device": "cuda", "mode": "quick"}


def judged(pool, count):
    text, task = plain_text(TASK), catalog.get(TASK)
    for key in range(count):
        pool.submit(Job(key=key, text=text, task=task, size="kb"))
    return {done.key: verdict for done, verdict in pool.completed()}


def test_a_gpu_judges_and_is_named():
    with LocalPool(1, OPTIONS) as pool:
        found = judged(pool, 2)
    assert all(verdict.ok for verdict in found.values()), found
    assert {verdict.device_name for verdict in found.values()} == {machine.driver().gpus[0].name}


def test_programs_compiled_ahead_get_the_verdicts_of_one_judge_that_does_one_after_the_other():
    right, task = plain_text(TASK), catalog.get(TASK)
    texts = [
        right,
        right.replace("v < 0.0f ? 0.0f", "v < 0.1f ? 0.1f"),
        right.replace("float v = x[i];", "float v = missing[i];"),
        right.replace("out[i] =", "out[i + (1ull << 40)] ="),  # takes the context along
        "import os\n" + right,
        right.replace("v < 0.0f", "0.0f > v"),
        right,
    ]
    jobs = [Job(key=key, text=text, task=task, seed=3, timing=False) for key, text in enumerate(texts)]
    with LocalPool(1, OPTIONS, compilers=2) as pool:
        for job in jobs:
            pool.submit(job)
        found = {done.key: verdict for done, verdict in pool.completed()}
    with Judge(**OPTIONS) as judge:
        for job in jobs:
            alone = judge.judge(job)
            assert list(alone.rung_ms) == list(found[job.key].rung_ms)
            assert dataclasses.replace(alone, rung_ms={}) == dataclasses.replace(found[job.key], rung_ms={})
    assert [str(found[key].outcome) for key in range(7)] == [
        "ok",
        "wrong_value",
        "compile_error",
        "out_of_bounds",
        "refused",
        "ok",
        "ok",
    ]


def test_a_worker_for_each_gpu(scripted, tmp_path):
    gpus = machine.driver().gpus
    if len(gpus) < 2:
        pytest.skip("needs two GPUs")
    with LocalPool(2, OPTIONS, make_judge=scripted.Obedient) as pool:
        for key in range(2):
            pool.submit(Job(key=key, text=f"meet {tmp_path}", task=catalog.get(TASK), size="kb"))
        assert len({verdict.message for _, verdict in pool.completed()}) == 2
    with LocalPool(len(gpus), OPTIONS) as pool:
        found = judged(pool, 4 * len(gpus))
    assert all(verdict.ok for verdict in found.values()), found
    assert len({verdict.device_name for verdict in found.values()}) == 1


@pytest.mark.ray
def test_an_actor_for_each_gpu():
    import ray

    ray.init(log_to_driver=False)
    try:
        with RayPool(OPTIONS) as pool:
            found = judged(pool, 2)
            assert len(pool._slots) == len(machine.driver().gpus)
    finally:
        ray.shutdown()
    assert all(verdict.ok for verdict in found.values()), found
    assert {verdict.device_name for verdict in found.values()} <= {gpu.name for gpu in machine.driver().gpus}
