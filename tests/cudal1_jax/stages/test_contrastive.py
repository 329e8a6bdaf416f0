import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from cudal1_jax.contrastive.store import Store
from cudal1_jax.learn.checkpoint import Checkpointer
from cudal1_jax.policy import lora
from cudal1_jax.report import summary
from cudal1_jax.report.metrics import MetricsLog
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import judging, learning, sampling

pytestmark = pytest.mark.usefixtures("compile_quickly")


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@pytest.fixture(scope="module")
def uninterrupted(toy, tmp_path_factory, compile_quickly):
    """What a run leaves behind that nothing interrupted, and the programs that it measured."""
    folder = tmp_path_factory.mktemp("toy") / "run"
    pool = toy.ScriptedPool()
    toy.run(folder, toy.config(), pool)
    return toy.fingerprint(folder), sorted(pool.judged), folder


# (owner, function, call at which it is killed): every arrow of the loop, in the second iteration where there is one
ARROWS = [
    (judging, "record_seeds", 1),
    (judging, "submit", 1),
    (judging, "collect", 1),
    (sampling, "choose_exemplars", 2),
    (sampling, "write_prompts", 2),
    (sampling, "roll_out", 2),
    (Store, "record_rollout", 3),  # the first is that of the seeds
    (Store, "record_verdict", 2),  # among the seeds
    (Store, "record_verdict", 10),  # in the middle of an iteration
    (judging, "record_hacks", 2),
    (learning, "smoothed_rewards", 2),
    (learning, "group_advantages", 2),
    (Store, "record_metrics", 2),
    (Checkpointer, "save", 2),
    (MetricsLog, "append", 2),
    (lora, "save", 1),
    (summary, "summarise", 1),
    (summary, "save", 1),
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("owner", "name", "call"), ARROWS, ids=[f"{a[1]}-{a[2]}" for a in ARROWS])
def test_a_run_killed_at_an_arrow_goes_on_to_the_same_end(
    toy, uninterrupted, tmp_path, monkeypatch, owner, name, call, moment
):
    real, calls = getattr(owner, name), []

    def killing(*arguments, **named):
        calls.append(name)
        if len(calls) == call and moment == "before":
            raise Killed
        result = real(*arguments, **named)
        if len(calls) == call:
            raise Killed
        return result

    measured = []
    monkeypatch.setattr(owner, name, killing)
    pool = toy.ScriptedPool()
    with pytest.raises(Killed):
        toy.run(tmp_path / "run", toy.config(), pool)
    measured += pool.judged
    pool = toy.ScriptedPool()
    toy.run(tmp_path / "run", toy.config(), pool)
    measured += pool.judged

    expected, expected_measured, _ = uninterrupted
    assert toy.fingerprint(tmp_path / "run") == expected
    lost_in_flight = len(measured) - len(expected_measured)
    assert sorted(set(measured)) == sorted(set(expected_measured))
    assert lost_in_flight <= (1 if name in ("record_verdict", "collect") and moment == "before" else 0)


def test_an_iteration_learns_from_its_own_exemplars(uninterrupted):
    _, _, folder = uninterrupted
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert all(row["exemplars"] == 2.0 for row in rows)
    with Store(folder / "store.sqlite") as store:
        for step in range(4):
            prompts, samples = store.rollout(step)
            known = {e.verdict.program_sha256 for e in store.judged(end_step=step) if e.verdict.ok}
            assert set(prompts[0].exemplars) <= known
            assert len(samples) == 4
        tasks = [entry.task for entry in store.judged(first_step=0)]
    assert {tasks.count("1_019"), tasks.count("1_023")} == {8}  # each task once in two iterations


def test_no_program_of_a_run_is_measured_twice(uninterrupted):
    _, measured, folder = uninterrupted
    with Store(folder / "store.sqlite") as store:
        programs = {(e.task, e.verdict.program_sha256) for e in store.judged() if e.program}
    assert len([m for m in measured if m in programs]) == len(programs)


def test_checkpoints_lost_together_do_not_lose_the_run(toy, uninterrupted, tmp_path):
    folder = tmp_path / "run"
    toy.run(folder, toy.config(), toy.ScriptedPool())
    for path in (folder / "checkpoints").iterdir():
        path.rename(tmp_path / path.name)
    (folder / "summary.json").unlink()
    pool = toy.ScriptedPool()
    toy.run(folder, toy.config(), pool)
    assert pool.judged == []
    assert toy.fingerprint(folder) == uninterrupted[0]


@pytest.mark.parametrize(
    ("policy", "update"), [("none", False), ("best", False), ("none", True)], ids=["vanilla", "evolve", "grpo"]
)
def test_modes_show_exemplars_and_update_as_their_names_say(toy, tmp_path, policy, update):
    page = toy.config(iterations=2)
    page.exemplars.policy, page.learn.train = policy, update
    toy.run(tmp_path / "run", page, toy.ScriptedPool())
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {row["exemplars"] for row in rows} == {0.0 if policy == "none" else 2.0}
    assert all(("learn/loss" in row) == update for row in rows)


def test_a_fault_of_the_evaluator_stops_the_run_and_is_not_recorded(toy, uninterrupted, tmp_path, monkeypatch):
    real = toy.verdict
    monkeypatch.setattr(toy, "verdict", toy.failed)
    with pytest.raises(
        RunError, match=r"the evaluator failed while judging plain.py of task 1_019: no compiler; .*doctor"
    ):
        toy.run(tmp_path / "run", toy.config(), toy.ScriptedPool())
    monkeypatch.setattr(toy, "verdict", real)
    toy.run(tmp_path / "run", toy.config(), toy.ScriptedPool())
    assert toy.fingerprint(tmp_path / "run") == uninterrupted[0]


def test_an_iteration_that_cannot_end_in_time_is_not_begun(toy, tmp_path, monkeypatch):
    seconds = iter(range(0, 100_000, 10))  # every look at the clock takes ten seconds
    monkeypatch.setattr(toy, "now", lambda: float(next(seconds)))
    result = toy.run(tmp_path / "run", toy.config(stop_after_s=200.0, reserve_s=20.0), toy.ScriptedPool())
    assert 1 <= result.iterations < 4
    assert result.seconds <= 200.0
    assert (tmp_path / "run" / "summary.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_killed_at_twenty_random_times_goes_on_to_the_same_end(toy, uninterrupted, tmp_path):
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    log = tmp_path / "stderr.txt"

    def start(name):
        command = [sys.executable, toy.__file__, str(tmp_path / name)]
        with log.open("w") as stderr:
            return subprocess.Popen(command, env=environment, stderr=stderr)

    def finish(process, timeout_s=None):
        assert process.wait(timeout=timeout_s) == 0, log.read_text()[-4000:]

    finish(start("first"))  # fills the compilation cache
    began_s = time.monotonic()
    finish(start("second"))
    whole_s = time.monotonic() - began_s  # how long a run takes now; other load comes and goes
    draw, kills, runs = random.Random(0), 0, 0
    while kills < 20:
        began_s = time.monotonic()
        process = start(f"run{runs}")
        try:
            finish(process, timeout_s=draw.uniform(0.4, 1.0) * whole_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            assert toy.fingerprint(tmp_path / f"run{runs}") == uninterrupted[0]
            runs += 1
            whole_s = time.monotonic() - began_s
    finish(start(f"run{runs}"))
    assert toy.fingerprint(tmp_path / f"run{runs}") == uninterrupted[0]


def test_every_iteration_is_a_line_while_the_run_goes_on(toy, tmp_path, capsys):
    page = toy.config()
    toy.run(tmp_path / "run", page, toy.ScriptedPool())
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("iteration ")]
    assert [line.split(":")[0] for line in said] == [
        f"iteration {step + 1} of {page.iterations}" for step in range(page.iterations)
    ]
