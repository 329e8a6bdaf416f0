"""The command line: exit codes, what is on stdout, and refusals that say what to do."""

import json
import shutil
from pathlib import Path

import pytest

from evaluator.commands import command_line, judging
from evaluator.devices import toolchain
from evaluator.judge import doctor
from evaluator.judge.ending import exit_code
from evaluator.judge.verdict_json import from_json
from evaluator.records import Outcome
from evaluator.tasks import catalog

CANDIDATES = Path(__file__).parents[2] / "candidates"

TASKS_FILE = """
def forward(nn, x):
    return nn.mul(x, 3.0)


TASKS = {"my_scale": {"forward": forward, "family": "elementwise", "sizes": {"cpu": {"x": (20, 77)}}}}
"""

PROGRAM = '''
import cupy as cp

source = r"""
extern "C" __global__ void scale(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 3.0f * x[i];
}
"""
scale = cp.RawKernel(source, "scale")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    scale(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
'''


@pytest.fixture
def own(tmp_path):
    (tmp_path / "tasks.py").write_text(TASKS_FILE)
    folder = tmp_path / "programs" / "my_scale"
    folder.mkdir(parents=True)
    (folder / "good.py").write_text(PROGRAM)
    (folder / "plain.py").write_text(PROGRAM.replace("3.0f * x[i]", "x[i] + x[i] + x[i]"))
    return tmp_path


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command."""
    try:
        code = command_line.main([str(argument) for argument in arguments])
    except SystemExit as error:  # argparse
        code = error.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_check_of_a_right_program_is_0_with_one_json_line(own, capsys):
    good = own / "programs/my_scale/good.py"
    arguments = ("check", good, "--task=my_scale", f"--tasks-file={own / 'tasks.py'}", "--mode=quick", "--json")
    code, out, _ = run(capsys, *arguments, f"--plain={own / 'programs/my_scale/plain.py'}")
    assert code == 0
    verdict = from_json(out)
    assert out.count("\n") == 1
    assert (verdict.outcome, verdict.task, verdict.mode) == (Outcome.OK, "my_scale", "quick")
    assert verdict.speedup > 0


def test_check_of_a_wrong_program_is_1_and_readable(own, capsys):
    bad = own / "bad.py"
    bad.write_text(PROGRAM.replace("3.0f", "2.0f"))
    code, out, _ = run(capsys, "check", bad, "--task=my_scale", f"--tasks-file={own / 'tasks.py'}", "--mode=quick")
    assert code == 1
    assert "wrong_value (correctness)" in out
    assert "seen" in out


def test_what_the_emulator_cannot_run_is_4(capsys):
    code, out, _ = run(
        capsys, "check", CANDIDATES / "unsupported__inline_ptx.py", "--task=1_019", "--mode=quick", "--json"
    )
    assert code == 4
    assert json.loads(out)["outcome"] == "unsupported"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "no_such_file.py", "--task=1_019"), "cannot read no_such_file.py"),
        (("check", ".", "--task=1_019"), "cannot read ."),
        (("check", __file__, "--task=1_0199"), "1_019"),
        (("check", __file__, "--task=1_019", "--size=huge"), "no size 'huge'"),
        (("check", __file__, "--task=1_019", "--mode=fast"), "invalid choice"),
        (("check", __file__), "--task"),
        (("check", __file__, "--task=1_019", "--jsn"), "evaluator check: error: unrecognized arguments: --jsn"),
        (("verify", ".", "--workers=x"), "seen 'x', expected a whole number of at least 1"),
        (("baselines", "--seconds=0"), "seen '0', expected a positive number"),
        (("verify", "no_such_folder"), "no folder"),
        (("tasks", "show"), "needs an id"),
        (("tasks", "show", "9_999"), "9_999"),
        (("frobnicate",), "invalid choice"),
        ((), "COMMAND"),
        (("check", __file__, "--task=1_019", "--size=kb"), "take 12.9 GB, and on the emulator a program has 1.07 GB"),
        (("check", __file__, "--task=x", "--tasks-file=none.py"), "none.py"),
    ],
)
def test_wrong_use_is_2_and_says_what_is_wrong(arguments, message, capsys):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err


def test_cuda_without_a_gpu_is_refused_before_any_work(capsys, monkeypatch):
    monkeypatch.setattr(judging, "make_judge", lambda options: pytest.fail("work began"))
    monkeypatch.setattr(doctor.machine, "driver", lambda: None)
    code, out, err = run(capsys, "check", CANDIDATES / "wrong_value__identity.py", "--task=1_019", "--device=cuda")
    assert (code, out) == (2, "")
    assert "use --device=cpu" in err


def test_what_nobody_foresaw_is_3_and_no_judged_fault(capsys, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(judging, "make_judge", fail)
    assert command_line.main(["check", str(CANDIDATES / "wrong_value__zeros.py"), "--task=1_019"]) == 3
    assert "out of luck" in capsys.readouterr().err


def test_no_compiler_is_one_clear_message(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    toolchain.find.cache_clear()
    try:
        code, _, err = run(capsys, "check", CANDIDATES / "wrong_value__identity.py", "--task=1_019")
    finally:
        toolchain.find.cache_clear()
    assert code == 2
    assert "install g++ or clang++" in err


def test_verify_judges_a_folder_and_writes_verdicts_beside_the_programs(own, capsys):
    folder = own / "programs"
    code, out, err = run(
        capsys, "verify", folder, f"--tasks-file={own / 'tasks.py'}", "--mode=quick", "--write", "--json", "--workers=1"
    )
    assert code == 0, err
    assert len(out.splitlines()) == 2
    for name in ("good", "plain"):
        verdict = from_json((folder / f"my_scale/{name}.cpu.json").read_text())
        assert verdict.ok
        assert verdict.speedup is not None
    assert "2 of 2 ok" in err or "1 of 1 ok" in err


def test_compare_times_the_second_against_the_first(own, capsys):
    programs = own / "programs/my_scale"
    code, out, err = run(
        capsys, "compare", programs / "plain.py", programs / "good.py", "--task=my_scale",
        f"--tasks-file={own / 'tasks.py'}", "--mode=quick", "--json",
    )  # fmt: skip
    assert code == 0
    first, second = map(from_json, out.splitlines())
    assert first.times == {}
    assert set(second.speedups) == {"plain"}
    assert "times as fast as" in err


def test_tasks_lists_and_shows(capsys):
    code, out, _ = run(capsys, "tasks")
    assert code == 0
    assert "1_012" in out
    code, out, _ = run(capsys, "tasks", "show", "1_012")
    assert code == 0
    assert "def forward(nn, A, B)" in out
    assert f"A: float32[{catalog.get('1_012').arrays_at('cpu')[0].shape[0]}]" in out


def test_doctor_names_what_is_missing_and_the_cure():
    findings = {finding.name: finding for finding in doctor.examine()}
    assert {"compiler", "emulator", "sandbox", "NVIDIA driver", "NVRTC", "CuPy"} <= set(findings)
    assert all(finding.cure is None or len(finding.cure) > 10 for finding in findings.values())
    assert findings["emulator"].cure is None
    assert findings["compiler"].seen.startswith(toolchain.find().compiler)


def test_the_gravest_of_several_outcomes_decides(own):
    def code(*outcomes):
        return exit_code(type("V", (), {"outcome": outcome})() for outcome in outcomes)

    assert code(Outcome.OK) == 0
    assert code(Outcome.OK, Outcome.UNSUPPORTED) == 4
    assert code(Outcome.UNSTABLE_TIMING) == 4
    assert code(Outcome.UNSUPPORTED, Outcome.WRONG_VALUE, Outcome.OK) == 1
    assert code(Outcome.WRONG_VALUE, Outcome.EVALUATOR_ERROR) == 3
