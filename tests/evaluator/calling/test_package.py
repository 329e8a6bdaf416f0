"""What `import evaluator` offers, and what it leaves alone until it is asked."""

import subprocess
import sys

import pytest

import evaluator
from evaluator.judge.baseline import plain_text


def modules_after(statements: str) -> set[str]:
    script = f"import sys\n{statements}\nprint(*(name.split('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_heavy():
    assert modules_after("import evaluator").isdisjoint({"jax", "cupy", "torch", "numpy", "typing"})


def test_loading_a_program_needs_no_jax():
    assert "jax" not in modules_after("import evaluator\nevaluator.load('kernels/1_019/plain.py', device='cpu')")


def test_the_functions_are_those_of_the_package():
    from evaluator.calling.checking import check
    from evaluator.calling.jax_function import jax_call
    from evaluator.calling.loaded import load

    assert (evaluator.check, evaluator.jax_call, evaluator.load) == (check, jax_call, load)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'evaluator' has no attribute 'compile'"):
        evaluator.compile  # noqa: B018


def test_check_judges_a_file(tmp_path):
    (tmp_path / "wrong.py").write_text(plain_text("1_019").replace("v < 0.0f", "v < 0.0f &&"))
    verdict = evaluator.check(tmp_path / "wrong.py", "1_019")
    assert (verdict.outcome, verdict.size, verdict.device) == ("compile_error", "cpu", "cpu")


def test_check_judges_a_text(tmp_path):
    assert evaluator.check("import os\n", "1_019").outcome == "refused"
    with pytest.raises(KeyError, match="no task"):
        evaluator.check("import os\n", "9_999")
