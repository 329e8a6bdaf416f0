"""Which pool a config names, and what is refused before anything is made."""

import pytest
import toy

from cudal1_jax.contrastive.store import Store, StoreError
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import checks, pools, setup
from evaluator.devices.cuda import machine
from evaluator.devices.cuda.machine import Driver, Gpu
from evaluator.judge.findings import Findings
from evaluator.records import Fault, Mode, Outcome, Rung
from evaluator.workers import ray_pool
from evaluator.workers.local import LocalPool


def page(**changes):
    config = toy.config()
    for name, value in changes.items():
        config.pool[name] = value
    return config


def key_file(folder):
    path = folder / "key"
    path.write_text("k" * 32)
    path.chmod(0o600)
    return str(path)


def test_by_default_a_run_is_judged_on_its_own_machine():
    with pools.pool(page()) as pool:
        assert isinstance(pool, LocalPool)


def test_an_evaluator_that_is_not_there_is_an_error_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(pools.RemotePool, "_connect", lambda self, _: RemotePoolConnect(self, 0.0))
    config = page(kind="remote", address="127.0.0.1:1", key_file=key_file(tmp_path))
    checks._check_pool(config)
    with pytest.raises(RunError, match=r"config\.pool: no evaluator at 127\.0\.0\.1:1 .*python -m evaluator serve"):
        pools.pool(config).__enter__()


RemotePoolConnect = pools.RemotePool._connect


def test_a_missing_ray_is_an_error_of_the_run(monkeypatch):
    monkeypatch.setattr(ray_pool.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"config\.pool: Ray is not installed"):
        pools.pool(page(kind="ray")).__enter__()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "slurm"}, "config.pool.kind: 'slurm' is none of local, ray, remote"),
        ({"kind": "ray", "cpus": 0}, "config.pool.cpus: seen 0, expected at least 1"),
        ({"kind": "remote"}, "config.pool.address: address '', expected host:port"),
        ({"kind": "remote", "address": "host"}, "config.pool.address: address 'host', expected host:port"),
        ({"kind": "remote", "address": "h:1"}, "config.pool.key_file: no key: give --key-file"),
        ({"kind": "remote", "address": "h:1", "key_file": "/nowhere/key"}, "config.pool.key_file: key file /nowhere"),
    ],
)
def test_a_pool_that_cannot_be_is_refused_with_its_key(changes, message, monkeypatch):
    monkeypatch.delenv("CUDAL1_POOL_KEY", raising=False)
    with pytest.raises(RunError) as error:
        checks._check_pool(page(**changes))
    assert message in str(error.value)


def test_a_machine_of_its_own_need_not_have_the_device(tmp_path, monkeypatch):
    """The learner's host has neither a GPU nor CuPy where others judge."""
    monkeypatch.setattr(machine, "read", lambda: pytest.fail("looked for a GPU"))
    config = page(kind="remote", address="evaluator:7000", key_file=key_file(tmp_path))
    config.device, config.size = "cuda", "kb"
    checks._check_judging(config)


@pytest.mark.parametrize(("gpus", "workers"), [(0, 1), (1, 1), (2, 2), (8, 4)])
def test_on_gpus_a_worker_has_one_of_its_own(gpus, workers, monkeypatch):
    monkeypatch.setattr(machine, "driver", lambda: Driver((13, 0), (Gpu("NVIDIA H200", 90, 1 << 37),) * gpus))
    config = toy.config(device="cuda")
    config.judge.workers = 4
    assert setup.judging_workers(config) == workers


def verdict(device_name, task="1_019", fault=None):
    found = Findings(task=task, size="cpu", device="cpu", mode=Mode.QUICK, device_name=device_name)
    return found.verdict(fault)


def test_a_run_never_compares_verdicts_of_two_devices(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        store.record_verdict(0, 0, "a", "", verdict("NVIDIA H200"))
        store.record_verdict(0, 1, "b", "", verdict("NVIDIA H200"))
        with pytest.raises(StoreError, match=r"task 1_019 was judged on NVIDIA H200 so far and now on NVIDIA L4"):
            store.record_verdict(0, 2, "c", "", verdict("NVIDIA L4"))
        assert len(store.judged()) == 2  # nothing of it was kept
        store.record_verdict(0, 2, "c", "", verdict("NVIDIA L4", task="1_020"))  # which is compared with nothing
        store.record_verdict(0, 3, "d", "", verdict("NVIDIA L4", fault=Fault(Outcome.CRASHED, Rung.LAUNCH, "")))
        store.record_verdict(0, 4, "e", "", verdict(""))  # of a version that did not say


def test_new_programs_go_to_the_device_that_judged_the_task_so_far():
    from cudal1_jax.contrastive.records import Judged
    from cudal1_jax.stages import judging

    def judged(sample, result):
        return Judged(step=0, sample=sample, task=result.task, program="p", name="", verdict=result)

    entries = [
        judged(0, verdict("NVIDIA L4", fault=Fault(Outcome.CRASHED, Rung.LAUNCH, ""))),
        judged(1, verdict("NVIDIA A100", task="1_020")),
        judged(2, verdict("")),
        judged(3, verdict("NVIDIA H200")),
    ]
    assert judging._model(entries, "1_019") == "NVIDIA H200"
    assert judging._model(entries, "1_020") == "NVIDIA A100"
    assert judging._model(entries, "1_021") is None
