"""How a command ends that cannot go on: a full disk, a reader that goes, Ctrl-C. Its exit code never judges."""

import os
import signal
import subprocess
import sys

import pytest

from evaluator.commands import command_line, tasks

FULL = "/dev/full"
REFUSED = "import os\n"


# Starts the command named by its arguments; the first says what Ctrl-C does to it, whatever it does to these tests.
START = """
import os, signal, sys
signal.signal(signal.SIGINT, getattr(signal, sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""


def run(*arguments, interrupt="SIG_DFL", wrapper=(), **keywords):
    """One command in a process of its own, started by `wrapper`."""
    start = [sys.executable, "-c", START, interrupt]
    command = [*wrapper, *start, sys.executable, "-m", "evaluator", *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, timeout=60, text=True, check=False, **keywords)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "1_019" / "refused.py"
    path.parent.mkdir()
    path.write_text(REFUSED)
    return path


@pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full on this system")
def test_a_full_disk_is_3_and_one_line(program):
    with open(FULL, "w") as full:
        for arguments in (("tasks",), ("check", program, "--task=1_019", "--json")):
            ended = run(*arguments, stdout=full)
            assert ended.returncode == 3
            assert ended.stderr == (
                "evaluator: cannot write: No space left on device; free some space or write elsewhere\n"
            )


@pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full on this system")
def test_a_full_disk_that_has_the_errors_too_is_3():
    with open(FULL, "w") as full:
        command = [sys.executable, "-m", "evaluator", "tasks"]
        assert subprocess.run(command, stdout=full, stderr=full, timeout=60, check=False).returncode == 3


def test_a_reader_that_goes_ends_the_command_quietly():
    code = (
        "import sys; from evaluator.commands.command_line import main; sys.argv = ['m', 'tasks']; input();"
        "sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()  # before it has written a line
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def test_a_command_without_any_stdout_ends_as_with_one(program):
    for arguments, code in ((("tasks",), 0), (("check", program, "--task=1_019", "--json"), 1)):
        ended = run(*arguments, wrapper=("sh", "-c", 'exec "$@" >&-', "sh"))
        assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)


def test_an_interruption_is_130_and_one_line(monkeypatch, capsys):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "run", interrupted)
    assert command_line.main(["tasks"]) == 130
    assert capsys.readouterr().err == "evaluator: interrupted\n"


def test_an_interruption_while_it_imports_leaves_no_traceback(tmp_path):
    # In the place of a module that every command imports, one that presses Ctrl-C.
    (tmp_path / "tqdm.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)\n")
    ended = run("tasks", env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdout=subprocess.PIPE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_whoever_ignores_interruptions_is_not_interrupted(tmp_path):
    (tmp_path / "tqdm.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\ntqdm = None\n")
    ignored = "SIG_IGN"  # as nohup and `&` in a script do
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = run("--version", interrupt=ignored, env=environment, stdout=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, "")
