"""The confined process that has a GPU: honest programs pass, and what broken ones do to it is over within seconds."""

import time

import pytest

from evaluator.judge.baseline import plain_text
from evaluator.judge.ladder import Judge
from evaluator.records import Limits, Outcome, Rung
from evaluator.tasks import catalog

pytestmark = pytest.mark.gpu

TASK = catalog.get("1_019")
HEAD = """import cupy as cp

SOURCE = r'''
extern "C" __global__ void k(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) { BODY }
}
'''
kernel = cp.RawKernel(SOURCE, "k")


def forward(x):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, y, x.size))
    return y
"""
HONEST = HEAD.replace("BODY", "y[i] = fmaxf(x[i], 0.0f);")
BROKEN = {
    "endless": ("while (true) { y[i] = x[i]; if (y[i] == 12345.678f) break; }", {Outcome.TIMEOUT}),
    "illegal access": ("y[i] = x[i + (1l << 40)];", {Outcome.OUT_OF_BOUNDS, Outcome.CRASHED}),
    "null pointer": ("y[i] = *(const float*)0;", {Outcome.OUT_OF_BOUNDS, Outcome.CRASHED}),
    "trap": ("y[i] = x[i]; __trap();", {Outcome.CRASHED}),
    "no memory": ("y[i] = x[i]; for (int j = 0; j < 64; ++j) *(char*)malloc(1 << 24) = 1;", None),
}


@pytest.fixture(scope="module")
def judge():
    with Judge(device="cuda", limits=Limits(memory_bytes=8 << 30, kernel_s=2.0)) as judge:
        yield judge


def check(judge, text):
    return judge.check(text, TASK, "cpu", timing=False, cases=("plain",))


def test_an_honest_program_is_judged_by_the_confined_process(judge, recwarn):
    verdict = check(judge, HONEST)
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
def test_a_layer_that_a_driver_dislikes_can_be_left_out(layers):
    with Judge(device="cuda", limits=Limits(gpu_confinement=layers)) as judge:
        assert check(judge, HONEST).ok


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_program_has_its_outcome_and_the_next_is_judged(judge, how):
    body, outcomes = BROKEN[how]
    assert check(judge, HONEST).ok  # everything is warm
    broken = check(judge, HEAD.replace("BODY", body))
    assert not broken.ok
    assert broken.rung not in (None, Rung.EXTRACT, Rung.SCREEN)
    if outcomes is not None:
        assert broken.outcome in outcomes, broken.message
    began = time.monotonic()
    assert check(judge, HONEST).ok
    print(f"{how}: {broken.outcome} ({broken.rung}), the next verdict after {time.monotonic() - began:.2f} s")
