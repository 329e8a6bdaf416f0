"""What a verdict says of a fault can be printed, stored and shown, whatever the program is called."""

import json

import pytest

from evaluator.judge.findings import MOST_CHARACTERS, Findings, shown
from evaluator.judge.ladder import Judge
from evaluator.records import Fault, Mode, Outcome, Rung
from evaluator.tasks.task import Array, Task

RELU = "def forward(nn, x):\n    return nn.relu(x)\n"
TASK = Task(id="relu", name="relu", family="elementwise", source=RELU, sizes={"cpu": (Array("x", (4,)),)})


@pytest.mark.parametrize(
    ("message", "seen"),
    [
        ("line 3: `é` | x = 1", "line 3: `é` | x = 1"),
        ("two\nlines", "two\nlines"),
        ("\x1b[2J\x07 gone\r", " [2J  gone "),
        ("half \ud800 a character \udcff", "half   a character  "),
        ("\u202eright to left", " right to left"),
        ("x" * 5_000, "x" * (MOST_CHARACTERS - 3) + "..."),
    ],
)
def test_a_message_is_printable_and_short(message, seen):
    assert shown(message) == seen
    assert shown(seen) == seen
    found = Findings(task="t", size="cpu", device="cpu", mode=Mode.QUICK)
    verdict = found.verdict(Fault(Outcome.REFUSED, Rung.SCREEN, message))
    assert json.loads(json.dumps(verdict.message).encode("utf-8")) == seen


def test_a_program_with_an_endless_name_gets_a_short_verdict():
    with Judge() as judge:
        for text in ("import cupy as cp\ncp." + "x" * 60_000, "x" * 60_000 + "\n```python\n" * 3_000):
            verdict = judge.check(text, TASK, completion="```" in text)
            assert not verdict.ok
            assert len(verdict.message) <= MOST_CHARACTERS
