"""The ladder: order of rungs, what a verdict holds, and faults that are ours."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaluator.judge.clock import derived
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.judge.verdict_json import from_json, to_json
from evaluator.records import Mode, Outcome, Rung
from evaluator.tasks.task import Array, Task

SCALE = Task(
    id="scale",
    name="scale",
    family="elementwise",
    source="def forward(nn, x, w):\n    return nn.mul(x, w)\n",
    sizes={"cpu": (Array("x", (40, 333)), Array("w", (333,), init="normal(0,1)", parameter=True))},
)


def program(loops=1, operation="x[i] * w[i % m]", n="x.size"):
    return f"""
import cupy as cp

source = r'''
extern "C" __global__ void scale(const float* x, const float* w, float* out, int n, int m) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  volatile float value = 0.0f;
  for (int k = 0; k < {loops}; ++k) value = {operation};
  out[i] = value;
}}
'''
scale = cp.RawKernel(source, "scale")


def forward(x, w):
    out = cp.empty(x.shape, cp.float32)
    scale((({n} + 255) // 256,), (256,), (x, w, out, x.size, w.size))
    return out
"""


SLOW, FAST = program(loops=40), program(loops=4)


@pytest.fixture(scope="module")
def judge():
    with Judge(mode=Mode.QUICK, seed=7) as started:
        yield started


def test_an_ok_verdict_is_whole(judge):
    verdict = judge.check(FAST, SCALE, plain=SLOW)
    assert verdict.ok, verdict.message
    assert list(verdict.rung_ms) == [str(rung) for rung in Rung]
    assert set(verdict.times) == {"program", "plain"}
    assert verdict.speedups["plain"].low <= verdict.speedups["plain"].value <= verdict.speedups["plain"].high
    assert verdict.speedup > 0
    assert verdict.peak_bytes >= 2 * 40 * 333 * 4
    assert verdict.own_kernel_share == 1.0
    assert verdict.floor_us is None  # none on cpu
    assert {error.case for error in verdict.errors} >= {"plain", "negated", "large", "integers"}
    assert from_json(to_json(verdict)) == verdict


def test_without_a_baseline_there_is_a_time_and_no_speedup(judge):
    verdict = judge.check(FAST, SCALE)
    assert verdict.ok, verdict.message
    assert (set(verdict.times), verdict.speedups, verdict.speedup) == ({"program"}, {}, None)


def test_correctness_alone_times_nothing(judge):
    verdict = judge.check(FAST, SCALE, timing=False)
    assert verdict.ok
    assert (verdict.times, Rung.TIMING in verdict.rung_ms) == ({}, False)


def test_cases_can_be_narrowed(judge):
    verdict = judge.check(FAST, SCALE, timing=False, cases=("negated",))
    assert {error.case for error in verdict.errors} == {"plain", "negated"}


def test_a_completion_and_its_program_get_the_same_verdict(judge):
    whole = judge.check(f"## Code\n```python\n{FAST}```\n", SCALE, completion=True, timing=False)
    alone = judge.check(FAST, SCALE, timing=False)
    assert whole.ok
    assert whole.errors == alone.errors
    assert whole.program_sha256 == judge.check(FAST, SCALE, timing=False).program_sha256


def test_a_fault_ends_the_climb_at_its_rung(judge):
    verdict = judge.check(program(operation="x[i] + w[i % m]"), SCALE)
    assert (verdict.outcome, verdict.rung) == (Outcome.WRONG_VALUE, Rung.CORRECTNESS)
    assert Rung.TIMING not in verdict.rung_ms
    assert verdict.message.startswith("case plain, ")
    assert "seen" in verdict.message
    assert "expected" in verdict.message


def test_what_passed_before_a_fault_is_on_record(judge):
    verdict = judge.check(program(operation="fabsf(x[i]) * w[i % m]"), SCALE)  # right on inputs from [0, 1)
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.message.startswith("case negated, ")
    assert [error.case for error in verdict.errors] == ["plain"]


def test_line_ends_do_not_change_the_identity(judge):
    one, two = (judge.check(text, SCALE, timing=False, cases=()) for text in (FAST, FAST.replace("\n", "\r\n")))
    assert one.program_sha256 == two.program_sha256
    assert two.ok


def test_the_seed_of_a_job_replaces_the_judge_s(judge):
    job = Job(key=1, text=FAST, task=SCALE, seed=99, timing=False)
    assert judge.judge(job).seeds == (99,)
    assert judge.judge(dataclasses.replace(job, seed=None)).seeds == (7,)
    seeds = [[error.seed for error in judge.judge(dataclasses.replace(job, seed=s)).errors] for s in (99, 99, 7)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_a_faulty_baseline_is_our_fault_not_the_program_s(judge):
    verdict = judge.check(FAST, SCALE, plain="import os\n")
    assert (verdict.outcome, verdict.rung) == (Outcome.EVALUATOR_ERROR, Rung.TIMING)
    assert "plain program of task scale does not run" in verdict.message


def test_a_baseline_that_waits_for_a_tracer_is_told_from_one_that_is_traced():
    told, waits = [], threading.Event()

    def pauses(key, begins):
        told.append((key, begins))
        waits.set()

    with Judge(seed=7, pauses=pauses) as judge:
        job = Job(key="waiting", text=FAST, task=SCALE)
        judge._task_outputs(job)
        with ThreadPoolExecutor(1) as threads:
            with judge._preparers.tracing():  # the only one
                plan = threads.submit(judge._screened_plan, SLOW, job)
                assert waits.wait(60)
            assert plan.result().steps
    assert told == [("waiting", True), ("waiting", False)]


def test_a_task_that_fails_is_our_fault_not_the_program_s(judge):
    broken = dataclasses.replace(SCALE, source="def forward(nn, x, w):\n    return nn.no_such_function(x)\n")
    verdict = judge.check(FAST, broken)
    assert verdict.outcome is Outcome.EVALUATOR_ERROR
    assert "no_such_function" in verdict.message


def test_a_size_that_a_task_lacks_is_wrong_use(judge):
    with pytest.raises(KeyError, match="no size 'kb_v0'"):
        judge.check(FAST, SCALE, size="kb_v0")


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="choose one of cpu, cuda"):
        Judge(device="tpu")


def test_a_closed_judge_starts_again(judge):
    with Judge(seed=7) as again:
        assert again.check(FAST, SCALE, timing=False).ok
        again.close()
        assert again.check(FAST, SCALE, timing=False).ok


def test_with_a_derived_clock_two_judges_agree_to_the_last_bit():
    scores = []
    for _ in range(2):
        with Judge(seed=7, clock=derived) as clocked:
            verdict = clocked.check(FAST, SCALE, plain=SLOW)
            scores.append((verdict.outcome, verdict.times, verdict.speedups, verdict.speedup))
    assert scores[0] == scores[1]
    assert scores[0][0] in (Outcome.OK, Outcome.NOT_REPRODUCED)


def test_verify_mode_reports_a_launch_that_does_nothing():
    doubled = FAST.replace(
        "    return out",
        "    idle = cp.empty(x.shape, cp.float32)\n    scale((1,), (1,), (x, w, idle, 1, w.size))\n    return out",
    )
    small = dataclasses.replace(SCALE, cases=("plain",))
    with Judge(mode=Mode.VERIFY, seed=7) as thorough:
        thorough._effort = dataclasses.replace(thorough._effort, plain_seeds=3)
        verdict = thorough.check(doubled, small, timing=False)
    assert verdict.ok, verdict.message
    assert verdict.message.count("idle launch") == 1
    assert "without scale of line" in verdict.message


TWO_SIZES = dataclasses.replace(
    SCALE, sizes={**SCALE.sizes, "kb": (Array("x", (90, 333)), Array("w", (333,), parameter=True))}
)


def verified_at_a_large_size(text, draws=4):
    with Judge(mode=Mode.VERIFY, seed=7) as thorough:
        thorough._effort = dataclasses.replace(thorough._effort, plain_seeds=draws, hidden_seeds=1, knock_out=False)
        return thorough.check(text, TWO_SIZES, size="kb", timing=False)


def test_verify_takes_its_many_draws_at_the_small_size():
    verdict = verified_at_a_large_size(FAST)
    assert verdict.ok, verdict.message
    assert verdict.size == "kb"
    assert "right on 4 plain draws at size cpu" in verdict.message


def test_a_program_for_the_large_size_alone_is_ok_with_a_note():
    verdict = verified_at_a_large_size(
        program(n="(90 * 333)", operation="i < 29970 && n == 29970 ? x[i] * w[i % m] : 0")
    )
    assert verdict.ok, verdict.message
    assert "not tried on 4 draws, since it does not hold at size cpu" in verdict.message


def test_a_program_that_fails_a_later_draw_at_the_small_size_is_at_fault():
    rare = "n == 29970 || x[0] < 0.9f ? x[i] * w[i % m] : 0"  # one draw in ten of the small size
    verdict = verified_at_a_large_size(program(operation=rare), draws=60)
    assert verdict.outcome is Outcome.WRONG_VALUE
    assert verdict.message.startswith("at size cpu: case ")
