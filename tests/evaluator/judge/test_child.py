"""Children: messages both ways, a clean standard output, an end."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evaluator.judge.child import Child


def echo(pipe):
    """Sends back what it receives; prints, which must reach nobody's standard output."""
    while True:
        message = pipe.recv()
        print("chatter", flush=True)
        pipe.send(message)


@pytest.fixture
def child(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(echo, "__module__", Path(__file__).stem)
    started = Child(echo)
    yield started
    started.end()


def test_objects_travel_both_ways(child):
    for message in ({"a": [1, 2]}, b"x" * 1_000_000, None):
        child.pipe.send(message)
        assert child.pipe.recv() == message


def test_the_interruptions_of_a_terminal_are_the_parents_alone(child):
    child.pipe.send(1)
    child.pipe.recv()  # it runs: its group is its own by then
    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)


def test_an_idle_child_leaves_when_its_pipe_closes(child):
    child.pipe.send(1)
    child.pipe.recv()
    assert child.end(patience_s=30.0) == 0
    assert not child.alive


def test_a_child_prints_nothing_to_the_standard_output_of_its_parent():
    script = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from evaluator.judge.child import Child
        import test_child

        child = Child(test_child.echo)
        child.pipe.send("hello")
        print(child.pipe.recv())
        child.end()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "hello\n"
    assert "chatter" in done.stderr
