"""The examples of README.md that judge and call programs from Python run as they stand."""

import contextlib
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def example():
    found = block("import evaluator\n\nverdict = ")
    assert len(found.splitlines()) <= 10
    return found


def block(beginning):
    """The one block of Python that begins so."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"```python\n({re.escape(beginning)}.*?)```", text, re.DOTALL)
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


def test_a_verified_program_is_called_on_arrays_and_under_jit(monkeypatch):
    said = said_by(block("import jax\nimport numpy as np\n\nimport evaluator\n"), monkeypatch)
    sums, difference = re.fullmatch(r"\[(.*)\] (\S+)\n", said).groups()
    assert [float(each) for each in sums.split()] == pytest.approx([1, 1, 1], abs=1e-5)  # rows of a softmax
    assert float(difference) <= 1e-9
