import dataclasses
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags

from cudal1_jax import main as program
from cudal1_jax.report import run_directory, summary
from cudal1_jax.report.summary import Summary
from cudal1_jax.stages import pipeline

# ml_collections 1.1 reads a config page by a method that Python deprecates
pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")

ROOT = Path(__file__).parents[3]
CRL = f"--config={ROOT / 'configs' / 'crl.py'}"
NEW_ADAPTER = "--config.policy.adapter="
DONE = Summary("crl", "cpu", "cpu", 5, 60.0, 40, 20, 0.5, 7, 1.3, ())


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    """Runs the program in this process as a shell would: (exit code, stdout, stderr)."""

    def call(*arguments):
        _forget_flags()
        monkeypatch.setattr(sys, "argv", ["main", f"--runs={tmp_path}", *arguments])  # where ml_collections looks
        code = 0
        try:
            program.main(program.parse_flags(sys.argv))
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield call
    _forget_flags()


def _forget_flags():
    """absl's flags are those of a process; another call must see none of the values of this one."""
    for name in [name for name in flags.FLAGS if name.startswith("config.")]:
        delattr(flags.FLAGS, name)
    for name in ("config", "run", "runs", "fresh"):
        flags.FLAGS[name].unparse()
    flags.FLAGS.unparse_flags()


@pytest.fixture
def finishing(monkeypatch):
    """Replaces the stages by one that ends at once; holds the configs that it was called with."""
    calls = []

    def run(config, directory, **_):
        calls.append(config)
        summary.save(directory, DONE, [])

    monkeypatch.setattr(pipeline, "run", run)
    return calls


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--config.rollout.temprature=0.5"], r'no such config key: .*temprature.* Did you mean "temperature"'),
        (["--config.iterations=abc"], "flag --config.iterations=abc"),
        (["--wrong=1"], "Unknown command line flag 'wrong'"),
        (["more"], "unexpected argument 'more'"),
    ],
)
def test_a_wrong_flag_is_one_line_on_stderr_and_exit_code_2(call, arguments, expected):
    code, out, err = call(CRL, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert re.search(expected, err), err


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (f"{CRL}:huge", "has no variant 'huge': choose from smoke, kb, vanilla, evolve, grpo"),
        ("--config=configs/absent.py", "No such file or directory: 'configs/absent.py'"),
    ],
)
def test_a_page_that_does_not_exist_is_one_line_and_exit_code_2(call, page, expected):
    code, _, err = call(page)
    assert code == 2
    assert expected in err
    assert len(err.strip().splitlines()) == 1


def test_a_call_without_a_page_says_what_to_give(call):
    code, _, err = call()
    assert (code, err) == (2, "error: --config is missing: give a page, for example --config=configs/crl.py\n")


def test_flags_change_the_config_and_the_name_of_the_run(call, finishing, tmp_path):
    changes = ["--config.rollout.temperature=0.7", "--config.tasks=1_019,1_023"]
    code, _, _ = call(f"{CRL}:smoke", NEW_ADAPTER, "--run=mine", *changes)
    assert code == 0
    assert finishing[0].rollout.temperature == 0.7
    assert finishing[0].tasks == "1_019,1_023"
    assert json.loads((tmp_path / "mine" / "config.json").read_text())["rollout"]["group"] == 2


def test_a_finished_run_prints_its_table_and_does_nothing(call, finishing):
    first = call(CRL, NEW_ADAPTER)
    second = call(CRL, NEW_ADAPTER)
    assert len(finishing) == 1
    assert first == second
    assert "crl: 5 iterations in 60 s; right: 50% of 40 samples; new and right: 7" in first[1]


def test_a_run_stopped_by_its_time_goes_on_by_the_same_command_or_with_more_time(call, finishing, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "DONE", dataclasses.replace(DONE, iterations=3))
    code, out, _ = call(CRL, NEW_ADAPTER)
    assert (code, len(finishing)) == (0, 1)
    assert "stopped at its time limit, 2 iterations before the end: the same command goes on" in out
    call(CRL, NEW_ADAPTER)
    monkeypatch.setattr(sys.modules[__name__], "DONE", dataclasses.replace(DONE, iterations=7))
    more = ("--config.stop_after_s=0", "--config.iterations=7", "--config.judge.workers=1")
    code, out, _ = call(CRL, NEW_ADAPTER, *more)
    assert (code, len(finishing)) == (0, 3)
    assert "stopped at its time limit" not in out
    assert finishing[-1].iterations == 7


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "/tmp/x"])
def test_a_run_stays_in_its_folder(call, finishing, name):
    code, _, err = call(CRL, NEW_ADAPTER, f"--run={name}")
    assert (code, finishing) == (2, [])
    assert "a run's name is a folder's" in err


def test_a_changed_config_is_refused_with_the_keys_that_differ(call, finishing):
    call(CRL, NEW_ADAPTER)
    code, out, err = call(CRL, NEW_ADAPTER, "--config.rollout.group=4", "--config.seed=9")
    assert (code, out) == (1, "")
    assert "rollout.group: 8 -> 4" in err
    assert "seed: 0 -> 9" in err
    assert len(finishing) == 1


def test_fresh_sets_the_earlier_run_aside_and_begins_again(call, finishing, tmp_path):
    call(CRL, NEW_ADAPTER)
    code, _, err = call(CRL, NEW_ADAPTER, "--fresh", "--config.seed=9")
    assert code == 0
    assert f"the earlier run lies in {tmp_path / 'crl.1'}" in err
    assert len(finishing) == 2
    assert json.loads((tmp_path / "crl.1" / "config.json").read_text())["seed"] == 0


def test_a_run_that_another_process_works_on_is_left_alone(call, finishing, tmp_path):
    (tmp_path / "crl").mkdir()
    with run_directory.RunLock(tmp_path / "crl"):
        for arguments in ([CRL, NEW_ADAPTER], [CRL, NEW_ADAPTER, "--fresh"]):
            code, _, err = call(*arguments)
            assert code == 1
            assert "another process works on run 'crl'" in err
    assert finishing == []


def test_a_config_is_locked_once_it_is_read(call, finishing):
    call(CRL, NEW_ADAPTER)
    with pytest.raises(AttributeError):
        finishing[0].rollout.tempo = 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--config.tasks=1_19", "config.tasks: no task '1_19'; close ids: 1_019"),
        ("--config.size=huge", "config.size: task 1_"),
        (
            "--config.policy.model=/absent/model.gguf",
            "config.policy.model: no GGUF file and no model folder at /absent/model.gguf",
        ),
        ("--config.policy.adapter=/absent", "no adapter_config.json in /absent"),
        ("--config.exemplars.policy=fittest", "exemplar policy 'fittest' does not exist: choose bucket"),
        ("--config.rollout.top_p=0.0", "config.rollout: top_p must be above 0 and at most 1"),
        ("--config.learn.kl=k9", "config.learn.kl: 'k9' is none of k1, k2, k3"),
        ("--config.judge.mode=slow", "config.judge.mode: 'slow' is none of quick, standard, verify"),
        ("--config.stage=dream", "config.stage: 'dream' is none of sft, self_supervised, contrastive, pipeline"),
        ("--config.device=tpu", "config.device: 'tpu' is none of cpu, cuda"),
        ("--config.iterations=-1", "config.iterations: seen -1, expected at least 1"),
        ("--config.judge.workers=0", "config.judge.workers: seen 0, expected at least 1"),
        ("--config.judge.gpu_share=1.0", "config.judge.gpu_share: seen 1.0, expected a share between 0 and 1"),
        ("--config.rollout.group=0", "config.rollout.group: seen 0, expected at least 1"),
        ("--config.learn.micro_batches=3", "config.learn.micro_batches: 8 samples of a prompt do not divide by 3"),
    ],
)
def test_a_value_that_cannot_be_is_one_clear_error_before_anything_is_judged(call, tmp_path, change, expected):
    code, out, err = call(CRL, NEW_ADAPTER, change)
    assert (code, out) == (1, "")
    assert expected in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_corrupt_store_is_refused_and_left_as_it_was(call, tmp_path):
    (tmp_path / "crl").mkdir()
    store = tmp_path / "crl" / "store.sqlite"
    store.write_bytes(b"scrambled" * 1000)
    code, _, err = call(CRL, NEW_ADAPTER)
    assert code == 1
    assert "is not a readable store" in err
    assert "--fresh" in err
    assert store.read_bytes() == b"scrambled" * 1000


def test_a_full_disk_is_one_clear_error(call, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "metrics.jsonl")

    monkeypatch.setattr(pipeline, "run", full)
    code, _, err = call(CRL, NEW_ADAPTER)
    assert code == 1
    assert "No space left on device: 'metrics.jsonl'" in err
    assert "free some space" in err


def test_the_program_starts_as_a_module_and_imports_no_jax_for_a_wrong_flag():
    code = (
        "import runpy, sys\nsys.argv = ['main', '--nonsense']\n"
        "try:\n    runpy.run_module('cudal1_jax.main', run_name='__main__')\n"
        "except SystemExit as stop:\n    print(stop.code, 'jax' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "2 False"
    assert ran.stderr.strip() == "error: Unknown command line flag 'nonsense'"


def test_ctrl_c_ends_a_run_that_computes(tmp_path):
    """XLA's threads go on with what they compute: here one that sleeps for a minute."""
    code = (
        "import runpy, sys, threading, time\n"
        "from cudal1_jax.stages import checks\n"
        "def interrupt(config):\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    raise KeyboardInterrupt\n"
        "checks.check = interrupt\n"
        f"sys.argv = ['main', '{CRL}', '--runs={tmp_path}']\n"
        "runpy.run_module('cudal1_jax.main', run_name='__main__')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (ended.returncode, ended.stderr) == (130, "error: stopped; the same command continues the run\n")
