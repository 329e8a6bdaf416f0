"""Processes are killed at every rung, and parents with their children: no verdict is lost, none blames the program."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from evaluator.devices import cpu, toolchain
from evaluator.devices.bounded_run import Run
from evaluator.judge.clock import derived
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.process_end import ProcessEnd
from evaluator.program.trace import Tracer, trace
from evaluator.records import Limits, Outcome, ProcessLost, ProgramFault, Rung, killed
from evaluator.tasks.task import Array, Task
from evaluator.workers.local import LocalPool

HERE = str(pathlib.Path(__file__).parent)
RELU = "def forward(nn, x):\n    return nn.relu(x)\n"
TASK = Task(id="relu", name="relu", family="elementwise", source=RELU, sizes={"cpu": (Array("x", (37, 65)),)})
PROGRAM = '''import cupy as cp

kernel = cp.RawKernel(r"""
extern "C" __global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
""", "k")


def forward(x):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, y, x.size))
    return y
'''
LIMITS = Limits(kernel_s=2.0)


def rungs(fast=None):
    """Every rung; all but one are slow."""
    return [rung if rung is fast else pytest.param(rung, marks=pytest.mark.slow) for rung in Rung]


@pytest.fixture
def doomed(monkeypatch):
    monkeypatch.syspath_prepend(HERE)  # workers get this path
    import doomed_judge

    return doomed_judge


def order(whom, rung, path):
    return f"# kill {whom} at {rung} unless {path}\n{PROGRAM}"


def job(key, text):
    return Job(key=key, text=text, task=TASK, plain=PROGRAM)


@pytest.mark.parametrize("rung", rungs(fast=Rung.TIMING))
def test_children_killed_at_a_rung_cost_no_verdict(doomed, rung, tmp_path, caplog):
    marker = tmp_path / "killed"
    with doomed.DoomedJudge(limits=LIMITS, clock=derived) as judge:
        assert judge.judge(job(0, PROGRAM)).ok  # everything runs that can be killed
        verdict = judge.judge(job(1, order("children", rung, marker)))
        assert verdict.ok, (verdict.outcome, verdict.rung, verdict.message)
        assert judge.judge(job(2, PROGRAM)).ok
    assert len(json.loads(marker.read_text())) >= 3
    assert "judging once more" in caplog.text


@pytest.mark.parametrize("rung", rungs())
def test_a_worker_killed_at_a_rung_costs_no_verdict(doomed, rung, tmp_path):
    marker = tmp_path / "killed"
    with LocalPool(1, {"limits": LIMITS, "clock": derived}, make_judge=doomed.DoomedJudge) as pool:
        pool.submit(job("doomed", order("judge", rung, marker)))
        pool.submit(job("next", PROGRAM))
        verdicts, seconds = {}, {}
        for done, verdict in pool.completed():
            verdicts[done.key], seconds[done.key] = verdict, time.time() - marker.stat().st_mtime
    print(f"killed at {rung}: its verdict came {seconds['doomed']:.1f} s later")
    assert sorted(verdicts) == ["doomed", "next"]
    assert all(verdict.ok for verdict in verdicts.values()), verdicts
    assert gone(doomed, json.loads(marker.read_text()))


def gone(doomed, pids, patience_s=20.0):
    deadline = time.monotonic() + patience_s
    while any(map(doomed.alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


ENDLESS = PROGRAM.replace("if (i < n) y[i]", "while (n > 0 && x[0] != 12345.678f) ((volatile float*)y)[0] = 1; y[i]")


def test_nothing_outlives_a_parent_that_is_killed(doomed, tmp_path):
    """The worker is in the middle of an endless kernel, whose own deadline is far away."""
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {HERE!r})
        import test_losses
        from evaluator.records import Limits
        from evaluator.workers.local import LocalPool

        if __name__ == "__main__":
            with LocalPool(1, {{"limits": Limits(kernel_s=1000.0)}}) as pool:
                pool.submit(test_losses.job(0, test_losses.ENDLESS))
                list(pool.completed())
        """)
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    try:
        while not any(map(_is_runner, pids := doomed.descendants(parent.pid))):
            assert parent.poll() is None
            time.sleep(0.05)
    finally:
        parent.kill()
        parent.wait()
    assert len(pids) >= 4  # worker, oracle, tracer, runner
    assert gone(doomed, pids)


def _is_runner(pid):
    return b"emulator-runner" in _command(pid)


def _command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


SLEEPING = """
def forward(a):
    for kind in ().__class__.__base__.__subclasses__():
        if kind.__name__ == "_wrap_close":
            kind.__init__.__globals__["__builtins__"]["__import__"]("time").sleep(10_000)
"""


def test_a_sleeping_tracer_does_not_outlive_a_parent_that_is_killed(doomed, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(f"""
        from evaluator.program.trace import Tracer
        from evaluator.records import Limits
        from evaluator.tasks.task import Array

        with Tracer(Limits(trace_s=600.0)) as tracer:
            ask = tracer._spare.ask
            tracer._spare.ask = lambda *arguments: (print("asked", flush=True), ask(*arguments))[1]
            tracer.trace({SLEEPING!r}, [Array("a", (4,))], [((4,), "float32")])
        """)
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline() == "asked\n"
        pids = doomed.descendants(parent.pid)
        assert len(pids) == 1
        while not _asleep(pids[0]):  # in the program's sleep, not in a read that ends with its pipe
            time.sleep(0.01)
    finally:
        parent.kill()
        parent.communicate()
    assert gone(doomed, pids)


def _asleep(pid):
    number = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return number in ("35", "230", "101", "115")  # nanosleep and clock_nanosleep, on x86-64 and aarch64


def test_a_tracer_killed_while_it_traces_is_no_fault_of_the_program():
    with Tracer() as tracer:
        ask = tracer._spare.ask

        def kill_and_ask(request, deadline_s):
            child = tracer_child
            child._await_ready()
            child._await_ready = lambda: None
            os.kill(child._process.pid, signal.SIGKILL)
            return ask(request, deadline_s)

        tracer_child = tracer._spare
        tracer_child.ask = kill_and_ask
        with pytest.raises(ProcessLost, match="killed the tracer"):
            tracer.trace(PROGRAM, TASK.arrays_at("cpu"), [((37, 65), "float32")])
        assert tracer.trace(PROGRAM, TASK.arrays_at("cpu"), [((37, 65), "float32")]).steps


@pytest.mark.parametrize(
    ("end", "errors", "expired", "outcome"),
    [
        (ProcessEnd(-9, 0.5, 0), b"", False, ProcessLost),
        (ProcessEnd(-9, 29.9, 0), b"", False, Outcome.TIMEOUT),
        (ProcessEnd(-9, 0.5, 0), b"", True, Outcome.TIMEOUT),
        (ProcessEnd(1, 0.5, 0), b"g++: fatal error: Killed signal terminated program cc1plus", False, ProcessLost),
        (ProcessEnd(1, 0.5, 0), b"kernel_0.cu:1:1: error: Killed signal", False, Outcome.COMPILE_ERROR),
    ],
)
def test_a_compiler_that_was_killed_is_told_from_one_that_took_too_long(
    monkeypatch, tmp_path, end, errors, expired, outcome
):
    plan = trace(PROGRAM + f"# {tmp_path}", TASK.arrays_at("cpu"), [((37, 65), "float32")])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(toolchain, "precompiled_shim", lambda *_: tmp_path)
    monkeypatch.setattr(toolchain.bounded_run, "run", lambda *_: Run(end, errors, expired))
    with pytest.raises(ProgramFault) as caught:
        cpu.compile(plan, Limits())
    if outcome is ProcessLost:
        assert isinstance(caught.value, ProcessLost)
    else:
        assert caught.value.fault.outcome is outcome


def test_a_program_whose_process_is_lost_every_time_is_an_evaluator_error(monkeypatch):
    def lost(*_, **__):
        raise killed(Rung.TRACE, "the tracer")

    with Judge(limits=LIMITS) as judge:
        monkeypatch.setattr(Tracer, "trace", lost)
        verdict = judge.judge(job(0, PROGRAM))
    assert (verdict.outcome, verdict.rung) == (Outcome.EVALUATOR_ERROR, Rung.TRACE)
    assert "is there memory enough?" in verdict.message
