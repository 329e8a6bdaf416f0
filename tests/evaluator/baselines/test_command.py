"""`python -m evaluator baselines`: what it prints, stores and refuses, and where it goes on."""

import json
import types

import pytest

from evaluator.baselines import kinds, measuring
from evaluator.baselines.measuring_process import Answer
from evaluator.baselines.record import from_json
from evaluator.baselines.sampling import Sampled
from evaluator.baselines.store import read
from evaluator.commands import command_line
from evaluator.devices.cuda import machine
from evaluator.tasks import catalog

TASKS_FILE = """
def forward(nn, x):
    return nn.mul(x, 3.0)


TASKS = {"my_scale": {"forward": forward, "family": "elementwise", "sizes": {"cpu": {"x": (20, 77)}}}}
"""


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command."""
    try:
        code = command_line.main([str(argument) for argument in arguments])
    except SystemExit as error:  # argparse
        code = error.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def answers(monkeypatch):
    """Stands for the measuring processes: gives 100 us, or what `answers.error` says, and remembers its requests."""
    given = types.SimpleNamespace(requests=[], error=None)

    def ask(request, deadline_s):
        given.requests.append(request)
        if given.error is not None:
            return Answer(None, "", given.error)
        return Answer(Sampled(100.0, 99.0, 102.0, 21), "host", None)

    monkeypatch.setattr(measuring, "ask", ask)
    monkeypatch.setattr(measuring.Oracle, "expected", lambda *_: None)
    return given


@pytest.mark.torch
def test_a_task_of_ones_own_is_measured_stored_and_not_measured_again(capsys, tmp_path, monkeypatch):
    (tmp_path / "tasks.py").write_text(TASKS_FILE)
    arguments = (
        "baselines", "my_scale", f"--tasks-file={tmp_path / 'tasks.py'}", "--baselines=xla,torch", "--seconds=0.05",
        f"--out={tmp_path / 'b.jsonl'}",
    )  # fmt: skip
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    assert "my_scale  xla       fp32" in out
    assert [record.subject.baseline for record in read(tmp_path / "b.jsonl")] == ["xla", "torch"]
    monkeypatch.setattr(measuring, "ask", lambda *_: pytest.fail("measured again"))
    assert run(capsys, *arguments)[:2] == (code, out)


def test_with_json_each_record_is_a_line_on_stdout_and_the_table_elsewhere(capsys, answers):
    code, out, err = run(capsys, "baselines", "1_019", "1_023", "--baselines=xla", "--json")
    assert code == 0
    records = [from_json(line) for line in out.splitlines()]
    assert [(record.subject.task, record.median_us) for record in records] == [("1_019", 100.0), ("1_023", 100.0)]
    assert "0.0990 to 0.1020" in err


def test_every_task_of_the_size_is_measured_by_default(capsys, answers, monkeypatch):
    monkeypatch.setattr(kinds, "versions", lambda *_: {})
    code, out, _ = run(capsys, "baselines", "--baselines=xla", "--json")
    assert code == 0
    asked = [request.task.id for request in answers.requests]
    assert asked == [json.loads(line)["task"] for line in out.splitlines()]
    assert len(asked) == len(catalog.ALL)


def test_a_failure_is_stored_and_measured_again_when_asked(capsys, answers, tmp_path):
    arguments = ("baselines", "1_019", "1_023", "--baselines=xla", f"--out={tmp_path / 'b.jsonl'}")
    answers.error = "out of memory"
    code, out, _ = run(capsys, *arguments)
    assert code == 3
    assert "1_019 xla: out of memory" in out
    answers.error = None
    assert run(capsys, *arguments)[0] == 3
    assert len(answers.requests) == 2
    assert run(capsys, *arguments, "--retry")[0] == 0
    assert len(answers.requests) == 4
    assert all(record.ok for record in read(tmp_path / "b.jsonl"))


def test_another_version_of_a_library_is_measured_for_itself(capsys, answers, tmp_path, monkeypatch):
    arguments = ("baselines", "1_019", "--baselines=xla", f"--out={tmp_path / 'b.jsonl'}")
    run(capsys, *arguments)
    monkeypatch.setattr(kinds, "versions", lambda baseline, device: {"jax": "99.0"})
    run(capsys, *arguments)
    assert len(answers.requests) == 2
    assert len(read(tmp_path / "b.jsonl")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--baselines=graph",), "graph is the reference recorded on a GPU: use --device=cuda"),
        (("--baselines=tvm",), "there are graph, xla"),
        (("--baselines=",), "names none"),
        (("9_999",), "9_999"),
        (("1_019", "--size=huge"), "no size 'huge'"),
        (("1_019", "--seconds=0"), "positive number"),
        (("1_019", "--deadline=inf"), "positive number"),
        (("1_019", "--out=."), "name another file"),
        (("1_019", f"--out={__file__}"), "not a record of a baseline"),
    ],
)
def test_wrong_use_is_2_and_says_what_to_do(capsys, answers, arguments, message):
    code, out, err = run(capsys, "baselines", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert answers.requests == []


def test_without_pytorch_its_baselines_are_left_out_and_refused_by_name(capsys, answers, monkeypatch):
    found = kinds.importlib.util.find_spec
    monkeypatch.setattr(kinds.importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    code, out, _ = run(capsys, "baselines", "1_019", "--json")
    assert [json.loads(line)["baseline"] for line in out.splitlines()] == ["xla"]
    code, _, err = run(capsys, "baselines", "1_019", "--baselines=torch_compile")
    assert code == 2
    assert "pip install 'cudal1-jax[torch]'" in err


def test_cuda_without_a_gpu_is_refused_before_any_work(capsys, answers, monkeypatch):
    monkeypatch.setattr(machine, "driver", lambda: None)
    code, _, err = run(capsys, "baselines", "1_019", "--device=cuda")
    assert code == 2
    assert "use --device=cpu" in err
    assert answers.requests == []


def test_the_versions_are_those_of_what_the_time_depends_on(monkeypatch):
    monkeypatch.setattr(kinds, "_driver", lambda: "580.1")
    assert set(kinds.versions("graph", "cuda")) == {"evaluator", "cupy", "cudnn", "driver"}
    assert set(kinds.versions("xla", "cuda")) == {"evaluator", "jax", "jaxlib", "cudnn", "driver"}
    assert set(kinds.versions("torch_compile", "cuda")) == {"evaluator", "torch", "cudnn", "driver"}
    assert kinds.versions("xla", "cpu")["jax"] == kinds.importlib.metadata.version("jax")
