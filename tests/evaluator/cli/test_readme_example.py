"""The example of README.md that judges from Python runs as it stands."""

import contextlib
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def example():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```python\n(import evaluator\n\nverdict = .*?)```", text, re.DOTALL)
    assert len(found.splitlines()) <= 10
    return found


def said_by(example, monkeypatch):
    monkeypatch.chdir(ROOT)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(example, "README.md", "exec"), {})
    return said.getvalue()


def test_it_prints_the_speedup_of_a_right_program(example, monkeypatch):
    pattern = r"\d+\.\d\d times its plain program \(\d+\.\d\d to \d+\.\d\d\), at \d+\.\d+ GB/s\n"
    assert re.fullmatch(pattern, said_by(example, monkeypatch))


def test_it_says_what_is_wrong_with_another(example, monkeypatch):
    other, changed = re.subn(r'check\("[^"]+"', 'check("tests/candidates/wrong_value__zeros.py"', example)
    assert changed == 1
    assert said_by(other, monkeypatch).startswith("wrong_value")
