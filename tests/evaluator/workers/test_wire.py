"""Jobs and options as JSON, and the key that both sides share."""

import dataclasses
import json
import os
import stat

import pytest

from evaluator.judge.job import Job
from evaluator.records import Limits, Mode
from evaluator.tasks import catalog
from evaluator.workers import key_file, wire
from evaluator.workers.pool import PoolError

FULL = Job(
    key=7,
    text="πrogram\r\n",
    task=catalog.get("1_019"),
    size="cpu",
    completion=True,
    seed=1 << 60,
    plain="other",
    record=1.5,
    timing=False,
    cases=("plain", "negated"),
    deadline_s=2.5,
    device_name="NVIDIA H200",
)


@pytest.mark.parametrize("job", [FULL, Job(key=7, text="", task=catalog.get("2_083"))])
def test_a_job_comes_back_as_it_was(job):
    record = json.loads(json.dumps(wire.job_record(job)))
    assert wire.job_from(record, 7, catalog.TASKS) == job


def test_no_field_of_a_job_stays_behind():
    """One that is added must travel too, or the evaluator would judge something else."""
    fields = {field.name for field in dataclasses.fields(Job)}
    assert wire.job_record(FULL).keys() == (fields - {"key"}) | {"task_digest"}
    assert all(getattr(FULL, name) != getattr(Job(0, "", FULL.task), name) for name in fields - {"task", "size"})


def test_a_learner_has_no_say_in_what_confines_programs_on_the_evaluators_host():
    record = wire.options_record({"limits": Limits(confinement=(), gpu_confinement=())})
    assert not {"confinement", "gpu_confinement"} & record["limits"].keys()
    assert wire.options_from(record)["limits"] == Limits()
    with pytest.raises(ValueError, match="limits with the fields"):
        wire.options_from({"limits": {**record["limits"], "confinement": []}})


def test_options_come_back_as_they_were():
    limits = Limits(trace_s=3.0, gpu_share=0.5, library_steps=False)
    options = {"device": "cuda", "mode": Mode.VERIFY, "seed": 3, "limits": limits}
    assert wire.options_from(json.loads(json.dumps(wire.options_record(options)))) == options
    assert wire.options_from({}) == {}


@pytest.mark.parametrize(
    "record",
    [
        {"clock": "derived"},
        {"mode": "fast"},
        {"seed": "0"},
        {"seed": True},
        {"limits": {}},
        {"limits": {**wire.options_record({"limits": Limits()})["limits"], "trace_s": "long"}},
        {"limits": {**wire.options_record({"limits": Limits()})["limits"], "timing_s": {"quick": 1.0}}},
        {"limits": {**wire.options_record({"limits": Limits()})["limits"], "more": 1}},
        {"limits": [1]},
    ],
)
def test_what_are_no_options_is_refused(record):
    with pytest.raises(ValueError, match=r"option|mode|Mode|field|limits"):
        wire.options_from(record)


def test_a_digest_tells_tasks_apart():
    task = catalog.get("1_019")
    assert wire.digest(task) == wire.digest(dataclasses.replace(task))
    assert wire.digest(task) != wire.digest(dataclasses.replace(task, source=task.source + " "))
    assert len({wire.digest(each) for each in catalog.TASKS.values()}) == len(catalog.TASKS)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path):
    path = tmp_path / "key"
    key, is_new = key_file.load_or_create(path)
    assert is_new
    assert len(key) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key_file.load_or_create(path) == (key, False)
    assert key_file.load(str(path)) == key


def test_a_key_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "key"
    path.write_text("k" * 32)
    path.chmod(0o640)
    with pytest.raises(PoolError, match="has mode 640, so that others may use it: chmod 600"):
        key_file.load(path)


@pytest.mark.parametrize("text", ["", "short\n", " " * 40])
def test_a_short_key_is_refused(tmp_path, text):
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(PoolError, match="expected 16 or more"):
        key_file.load(path)


def test_a_key_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("CUDAL1_POOL_KEY", "e" * 32)
    assert key_file.load("") == b"e" * 32
    monkeypatch.delenv("CUDAL1_POOL_KEY")
    with pytest.raises(PoolError, match=r"no key: give --key-file .* or set \$CUDAL1_POOL_KEY"):
        key_file.load("")
    assert "CUDAL1_POOL_KEY" not in os.environ
