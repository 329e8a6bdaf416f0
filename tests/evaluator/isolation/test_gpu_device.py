"""The confined process that has a GPU: honest programs pass, and what broken ones do to it is over within seconds."""

import pathlib
import time

import pytest

from evaluator.judge.baseline import plain_text
from evaluator.judge.ladder import Judge
from evaluator.records import Limits, Outcome, Rung
from evaluator.tasks import catalog

pytestmark = pytest.mark.gpu

HERE = pathlib.Path(__file__).parent
TASK = catalog.get("1_019")


@pytest.fixture(scope="module")
def programs():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import broken_programs

        return broken_programs


@pytest.fixture(scope="module")
def judge():
    with Judge(device="cuda", limits=Limits(memory_bytes=8 << 30, kernel_s=2.0)) as judge:
        yield judge


def check(judge, text):
    return judge.check(text, TASK, "cpu", timing=False, cases=("plain",))


def test_an_honest_program_is_judged_by_the_confined_process(judge, programs, recwarn):
    verdict = check(judge, programs.HONEST)
    assert verdict.ok, (verdict.outcome, verdict.message)
    assert not [warning for warning in recwarn if "runs without" in str(warning.message)]


def test_what_the_reference_needs_is_compiled_after_the_confinement(monkeypatch, tmp_path):
    """CuPy and the driver with empty caches: every kernel of theirs is compiled, written and read again."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path / "driver"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Judge(device="cuda") as judge:
        for task_id in ("1_019", "1_023", "1_047", "1_001"):
            task = catalog.get(task_id)
            text = plain_text(task_id)
            assert text is not None
            verdict = judge.check(text, task, "cpu")
            assert verdict.outcome not in (Outcome.EVALUATOR_ERROR, Outcome.CRASHED), verdict.message
    assert list((tmp_path / "cupy").rglob("*.cubin")) or list((tmp_path / "cupy").iterdir())


@pytest.mark.parametrize("layers", [("rlimits", "landlock"), ("rlimits", "seccomp"), ()])
def test_a_layer_that_a_driver_dislikes_can_be_left_out(layers, programs):
    with Judge(device="cuda", limits=Limits(gpu_confinement=layers)) as judge:
        assert check(judge, programs.HONEST).ok


HOW = ["endless", "illegal access", "null pointer", "trap", "no memory", "deep recursion", "misaligned"]


@pytest.mark.parametrize("how", HOW)
def test_a_broken_program_has_its_outcome_and_the_next_is_judged(judge, programs, how):
    assert set(programs.BROKEN) == set(HOW)
    assert check(judge, programs.HONEST).ok  # everything is warm
    broken, outcomes = check(judge, programs.broken(how)), programs.BROKEN[how][1]
    assert not broken.ok
    assert broken.rung not in (None, Rung.EXTRACT, Rung.SCREEN)
    if outcomes is not None:
        assert broken.outcome in outcomes, broken.message
    began = time.monotonic()
    assert check(judge, programs.HONEST).ok
    print(f"{how}: {broken.outcome} ({broken.rung}), the next verdict after {time.monotonic() - began:.2f} s")
