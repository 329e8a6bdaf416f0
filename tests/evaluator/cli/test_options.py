"""Options of the judging commands: confinement of the GPU's process, and refusals before any work."""

import importlib.util
import pathlib

import pytest

from evaluator.commands import command_line, judging, verify
from evaluator.judge import doctor
from evaluator.records import LAYERS

PROGRAM = str(pathlib.Path(__file__).parents[2] / "candidates" / "wrong_value__identity.py")
KERNELS = str(pathlib.Path(__file__).parents[3] / "kernels" / "1_019")


class Began(Exception):
    """Work began."""


def refusal(monkeypatch, capsys, *arguments):
    """What a command says that refuses to begin."""
    monkeypatch.setattr(judging, "make_judge", lambda options: pytest.fail("work began"))
    monkeypatch.setattr(verify, "LocalPool", lambda *_: pytest.fail("work began"))
    try:
        code = command_line.main(list(arguments))
    except SystemExit as error:  # argparse
        code = error.code
    seen = capsys.readouterr()
    assert (code, seen.out) == (2, "")
    return seen.err


@pytest.fixture
def limits_of(monkeypatch):
    """The limits with which a command would judge on a GPU."""
    monkeypatch.setattr(doctor, "missing_for", lambda *_: None)
    given = []

    def begin(options):
        given.append(judging.judge_options(options)["limits"])
        raise Began

    def pool(workers, options):
        given.append(options["limits"])
        raise Began

    monkeypatch.setattr(judging, "make_judge", begin)
    monkeypatch.setattr(verify, "LocalPool", pool)

    def run(*arguments):
        command_line.main([*arguments, "--device=cuda"])
        return given.pop()

    return run


@pytest.mark.parametrize(
    "command",
    [("check", PROGRAM, "--task=1_019"), ("compare", PROGRAM, PROGRAM, "--task=1_019"), ("verify", KERNELS)],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("option", "layers"),
    [
        ([], LAYERS),
        (["--gpu-confinement=rlimits,seccomp"], ("rlimits", "seccomp")),
        (["--gpu-confinement=none"], ()),
    ],
)
def test_layers_of_the_gpus_process_are_those_asked_for(limits_of, command, option, layers):
    limits = limits_of(*command, *option)
    assert limits.gpu_confinement == layers
    assert limits.confinement == LAYERS  # of all other processes
    assert limits.memory_bytes == 48 << 30  # that of a GPU


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpu-confinement=rlimits"], "it needs --device=cuda"),
        (["--gpu-confinement=chroot", "--device=cuda"], "seen 'chroot', expected some of rlimits,landlock,seccomp"),
        (["--plot=a.pdf"], "must end in .png or .svg"),
        (["--plot=no_such_folder/a.png"], "no_such_folder is no folder"),
    ],
)
@pytest.mark.parametrize("command", [("check", PROGRAM, "--task=1_019"), ("verify", KERNELS)], ids=lambda each: each[0])
def test_what_does_not_fit_is_refused_before_any_work(monkeypatch, capsys, command, arguments, message):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert message in refusal(monkeypatch, capsys, *command, *arguments)


def test_a_plot_without_matplotlib_names_the_cure_before_any_work(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = refusal(monkeypatch, capsys, "check", PROGRAM, "--task=1_019", "--plot=a.png")
    assert said == "evaluator: --plot needs matplotlib, which is not installed: pip install 'cudal1-jax[report]'\n"
