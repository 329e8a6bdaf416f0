"""What the judge makes of a process that has the GPU and is lost, late, broken or silent. The process is scripted."""

from pathlib import Path

import pytest

from evaluator.judge import gpu_process
from evaluator.judge.examination import Examination
from evaluator.judge.findings import Findings
from evaluator.judge.job import Job
from evaluator.judge.modes import EFFORTS
from evaluator.judge.timing import Schedule
from evaluator.program.plan import Plan
from evaluator.records import Limits, Mode, Outcome, ProcessLost, ProgramFault, Rung
from evaluator.tasks.task import Array, Task


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # the child gets this path
    import scripted_gpu

    process = gpu_process.GpuProcess(Limits(), process_main=scripted_gpu.main)
    yield process
    process.close()


def task(how):
    return Task(id=how, name="t", family="x", source=how, sizes={"cpu": (Array("x", (1,)),)})


def examined(gpu, how):
    found = Findings(task=how, size="cpu", device="cuda", mode=Mode.QUICK)
    plan = Plan((), (), (), ())
    effort = EFFORTS[Mode.QUICK]
    gpu.examine(found, Examination(Job("k", "text", task(how)), plan, None, 0, effort, Schedule(0.01, 0.1, 7)))
    return found


def fault_of(gpu, how):
    with pytest.raises(ProgramFault) as caught:
        examined(gpu, how)
    return caught.value.fault


def test_findings_come_back(gpu):
    assert examined(gpu, "fine").peak_bytes > 0


def test_a_process_that_a_program_broke_is_not_asked_again(gpu):
    first = examined(gpu, "fine").peak_bytes
    assert fault_of(gpu, "breaks").outcome is Outcome.OUT_OF_BOUNDS
    second = examined(gpu, "fine").peak_bytes  # at once, while the old one is still going
    assert second != first


def test_a_process_without_room_ends_and_the_judge_may_ask_another(gpu):
    first = examined(gpu, "fine").peak_bytes
    for question in (lambda: examined(gpu, "has no room"), lambda: gpu.outputs(task("has no room"), "cpu")):
        with pytest.raises(ProcessLost, match="too little memory for this task: OutOfMemoryError: 8 GB; 1 of 150"):
            question()
        second = examined(gpu, "fine").peak_bytes
        assert second != first
        first = second


def test_a_process_lost_over_a_program_is_the_programs_fault(gpu):
    fault = fault_of(gpu, "dies")
    assert (fault.outcome, fault.rung) == (Outcome.CRASHED, Rung.MEMORY_SAFETY)
    assert examined(gpu, "fine").peak_bytes > 0


def test_a_process_that_something_else_killed_over_a_program_is_not(gpu):
    with pytest.raises(ProcessLost, match="something else on this machine killed the process that has the GPU"):
        examined(gpu, "is killed")
    assert examined(gpu, "fine").peak_bytes > 0


@pytest.mark.parametrize("how", ["dies before", "dies over the reference"])
def test_a_process_lost_before_it_came_to_the_program_is_not(gpu, how):
    with pytest.raises(RuntimeError, match="twice before it came to the program"):
        examined(gpu, how)
    assert examined(gpu, "fine").peak_bytes > 0


def test_a_process_that_died_meanwhile_is_replaced(gpu):
    first = examined(gpu, "fine").peak_bytes
    gpu._child._process.kill()
    assert examined(gpu, "fine").peak_bytes != first


def test_the_one_in_reserve_takes_the_place_of_a_lost_process(gpu):
    examined(gpu, "fine")
    first, reserve = gpu._child.pid, gpu._reserve.pid
    fault_of(gpu, "breaks")
    assert gpu._child.pid == reserve  # at once: it starts while others compile
    assert examined(gpu, "fine").peak_bytes == reserve
    assert gpu._reserve.pid not in (first, reserve)


def test_one_in_reserve_that_died_meanwhile_is_not_used(gpu):
    examined(gpu, "fine")
    gpu._reserve._process.kill()
    gpu._reserve._process.wait()
    fault_of(gpu, "breaks")
    assert examined(gpu, "fine").peak_bytes == gpu._child.pid


def test_nothing_is_left_of_a_closed_one(gpu):
    examined(gpu, "fine")
    children = gpu._child._process, gpu._reserve._process
    gpu.close()
    assert all(child.poll() is not None for child in children)
    assert examined(gpu, "fine").peak_bytes > 0


def test_the_architecture_is_known_while_a_process_starts_anew(gpu):
    assert gpu.architecture == 90
    fault_of(gpu, "breaks")
    assert (gpu.architecture, gpu._is_ready) == (90, False)


def test_silence_is_a_timeout_on_the_rung_that_was_climbed(gpu, monkeypatch):
    examined(gpu, "fine")  # imports what questions are made of, which on a busy machine is a silence as well
    monkeypatch.setattr(gpu_process, "SILENCE_S", 0.5)
    fault = fault_of(gpu, "silent")
    assert (fault.outcome, fault.rung) == (Outcome.TIMEOUT, Rung.MEMORY_SAFETY)
    monkeypatch.setattr(gpu_process, "SILENCE_S", 60.0)
    assert examined(gpu, "fine").peak_bytes > 0


def test_a_reference_that_fails_is_said_and_another_one_answered(gpu):
    with pytest.raises(RuntimeError, match="device cuda: a reference failed"):
        gpu.outputs(task("raises"), "cpu")
    with pytest.raises(RuntimeError, match="lost over the reference of task dies"):
        gpu.outputs(task("dies"), "cpu")
    assert gpu.outputs(task("other"), "cpu") == ((1,), "other")
