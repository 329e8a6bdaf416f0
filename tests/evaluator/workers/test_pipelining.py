"""Programs traced and compiled while a GPU examines another one. Tracer and NVRTC are real, the GPU is scripted."""

import dataclasses
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.devices.cuda.compiler import Compiler
from evaluator.judge.job import Job
from evaluator.records import Outcome, Rung
from evaluator.tasks.task import Array, Task
from evaluator.workers.local import LocalPool

JUDGE_TESTS = str(Path(__file__).parents[1] / "judge")
OPTIONS = {"device": "cuda", "mode": "quick"}


def task(name="scaled"):
    source = f"# {name}\ndef forward(nn, x):\n    return nn.mul(x, 2.0)\n"
    return Task(id=name, name=name, family="x", source=source, sizes={"cpu": (Array("x", (40, 333)),)})


def program(*orders, body="out[i] = 2.0f * x[i];", result="out"):
    text = f"""
import cupy as cp

source = r'''
extern "C" __global__ void scaled(const float* x, float* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ {body} }}
}}
'''
scaled = cp.RawKernel(source, "scaled")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    scaled(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return {result}
"""
    return "\n".join([text, *(f"# gpu: {order}" for order in orders)]) + "\n"


FAULTY = {
    Outcome.REFUSED: "import os\n",
    Outcome.TRACE_ERROR: program(result="out[0, 0, 0, 0]"),
    Outcome.WRONG_SHAPE: program(result="out.reshape(333, 40)"),
    Outcome.COMPILE_ERROR: program(body="out[i] = y[i];"),
    Outcome.NO_PROGRAM: "",
}


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    """On a path that children inherit, with a cache that is empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(JUDGE_TESTS)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        import scripted_gpu_judge

        yield scripted_gpu_judge


@pytest.fixture
def pool(judges):
    with LocalPool(1, OPTIONS, compilers=2, make_judge=judges.ScriptedGpuJudge) as made:
        yield made


def give(pool, key, text, name="scaled", **fields):
    pool.submit(Job(key=key, text=text, task=task(name), completion=key is Outcome.NO_PROGRAM, **fields))


def verdicts(pool, count):
    found = {}
    while len(found) < count:
        for done, verdict in pool.poll():
            assert done.key not in found
            found[done.key] = verdict
    return found


def test_what_fails_before_it_needs_the_gpu_does_not_wait_for_it(pool, tmp_path):
    give(pool, "first", program())
    assert verdicts(pool, 1)["first"].ok  # and with it the GPU has told the shapes of the task's outputs
    give(pool, "long", program(f"await {tmp_path / 'end'}"))
    give(pool, "next", program(f"await {tmp_path / 'end'}"))
    for outcome, text in FAULTY.items():
        give(pool, outcome, text)
    found = verdicts(pool, len(FAULTY))
    assert {key: verdict.outcome for key, verdict in found.items()} == {outcome: outcome for outcome in FAULTY}
    (tmp_path / "end").touch()
    assert all(verdict.ok for verdict in verdicts(pool, 2).values())


def test_a_program_of_a_new_task_that_cannot_be_traced_does_not_wait_either(pool, tmp_path):
    give(pool, "long", program(f"await {tmp_path / 'end'}"))
    give(pool, "new", FAULTY[Outcome.TRACE_ERROR], name="another")
    assert verdicts(pool, 1)["new"].outcome is Outcome.TRACE_ERROR
    (tmp_path / "end").touch()
    assert verdicts(pool, 1)["long"].ok


def test_verdicts_are_those_of_a_judge_that_does_one_after_the_other(pool, judges):
    texts = {**FAULTY, "right": program(), "breaks": program("breaks"), "same": program()}
    for key, text in texts.items():
        give(pool, key, text, seed=5)
    found = verdicts(pool, len(texts))
    with judges.ScriptedGpuJudge(**OPTIONS) as judge:
        for key, text in texts.items():
            alone = judge.judge(Job(key, text, task(), completion=key is Outcome.NO_PROGRAM, seed=5))
            assert list(alone.rung_ms) == list(found[key].rung_ms)
            assert dataclasses.replace(alone, rung_ms={}) == dataclasses.replace(found[key], rung_ms={})


def test_a_program_that_breaks_the_gpu_costs_those_that_wait_for_it_nothing(pool, tmp_path):
    give(pool, "breaks", program(f"await {tmp_path / 'end'}", "breaks"))
    for key in range(4):
        give(pool, key, program())
    (tmp_path / "end").touch()
    found = verdicts(pool, 5)
    assert found.pop("breaks").outcome is Outcome.OUT_OF_BOUNDS
    assert all(verdict.ok for verdict in found.values())


def test_a_gpu_s_process_killed_over_a_program_costs_neither_it_nor_those_that_wait(pool, tmp_path):
    give(pool, "unlucky", program(f"once {tmp_path / 'killed'}"))
    for key in range(4):
        give(pool, key, program())
    assert all(verdict.ok for verdict in verdicts(pool, 5).values())
    assert (tmp_path / "killed").exists()


def test_a_worker_killed_with_many_jobs_costs_none_of_them(pool, tmp_path):
    keys = range(8)
    give(pool, "first", program(f"log {tmp_path / 'begun'}", f"await {tmp_path / 'end'}"))
    while not (tmp_path / "begun").exists():
        assert pool.poll(timeout_s=0.05) == []
    for key in keys:
        give(pool, key, program())
    os.kill(pool._slots[0].worker._child.pid, signal.SIGKILL)
    (tmp_path / "end").touch()
    found = verdicts(pool, 9)
    assert all(verdict.ok for verdict in found.values()), found
    assert pool.outstanding == 0


@pytest.fixture
def threads():
    """Threads that live as long as the judges that they use."""
    with ThreadPoolExecutor(8) as made:
        yield made


def judging(threads, judge, key, *orders, name="scaled", **text):
    return threads.submit(judge.judge, Job(key, program(*orders, **text), task(name)))


def test_a_job_that_waits_is_told_from_one_that_is_worked_on(judges, threads, tmp_path):
    told, on, end, paused = [], tmp_path / "on", tmp_path / "end", threading.Event()

    def pauses(key, waits):
        told.append((key, waits))
        paused.set()

    with judges.ScriptedGpuJudge(**OPTIONS, compilers=2, pauses=pauses) as judge:
        long = judging(threads, judge, "long", f"log {on}", f"await {end}")
        wait(on.exists)
        short = judging(threads, judge, "short")
        assert paused.wait(60)
        end.touch()
        assert long.result().ok
        assert short.result().ok
    assert told == [("short", True), ("short", False)]
    # The long one held the GPU all the while that the short one waited, and only its own rung says so.
    assert short.result().rung_ms[Rung.MEMORY_SAFETY] < long.result().rung_ms[Rung.MEMORY_SAFETY]


def test_programs_of_one_task_go_to_the_gpu_in_a_row(judges, threads, tmp_path):
    log, end = tmp_path / "log", tmp_path / "end"
    with judges.ScriptedGpuJudge(**OPTIONS, compilers=2) as judge:
        found = [judging(threads, judge, None, f"log {log}", f"await {end}", name="a")]
        wait(log.exists)
        found += [judging(threads, judge, None, f"log {log}", name=name) for name in "bababa"]
        wait(lambda: len(judge._turns._waiting) == 6)
        end.touch()
        assert all(each.result().ok for each in found)
    assert [line.split()[0] for line in log.read_text().splitlines()] == list("aaaabbb")


def test_identical_programs_compile_once(judges, threads, monkeypatch):
    compiled, compile = [], Compiler.compile

    def counted(self, source, *rest):
        compiled.append(source)
        return compile(self, source, *rest)

    monkeypatch.setattr(Compiler, "compile", counted)
    with judges.ScriptedGpuJudge(**OPTIONS, compilers=3) as judge:
        bodies = 5 * ["out[i] = x[i] + x[i];"] + ["out[i] = x[i] - -x[i];"]  # no other test has these
        found = [judging(threads, judge, None, body=body) for body in bodies]
        assert all(each.result().ok for each in found)
    assert len(compiled) == 2


def wait(happened):
    """Waits for what will happen; the limit is there only to end a test that failed."""
    end_s = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_pool_of_one_gpu_reads_as_many_jobs_as_its_worker_holds(pool):
    assert pool.capacity == 1 + 2 + 8
    assert pool.in_flight == pool.capacity + 1
