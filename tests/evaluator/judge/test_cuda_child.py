"""The process that has the GPU, with a scripted device: what it answers, and when it ends."""

import contextlib
import multiprocessing
import subprocess
import sys
import threading

import pytest

from evaluator import _core
from evaluator.judge import cuda_child
from evaluator.judge.findings import Findings
from evaluator.judge.knock_out import DeviceLost
from evaluator.records import Limits, Mode, Outcome, ProgramFault, Rung


class Ended(BaseException):
    """Stands for the end of the process."""


class Device:
    architecture = 90
    memory = (1, 2)

    def __init__(self):
        self.broken = False

    def wait(self, deadline_s):
        if self.broken:
            raise _core.CudaError("cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS", 700)


class Bench:
    def __init__(self):
        self.device = Device()
        self.tidied = 0

    def outputs(self, task, size):
        if task == "too large":
            raise MemoryError("8 GB")
        if task == "raises":
            raise ValueError("the reference does not take these shapes")
        return (((2, 3), "float32"),)

    def tidy(self):
        self.tidied += 1

    def memory_in_use(self):
        return "1 of 2 GB are free"


def examine(bench, found, how):
    """Stands for the ladder; `how` takes the place of the examination."""
    with found.rung(Rung.MEMORY_SAFETY):
        bench.beat()
    found.peak_bytes = 7
    if how == "breaks":
        bench.device.broken = True
    if how in ("breaks", "faults"):
        raise ProgramFault(Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY, "a stray access")
    if how == "endless":
        raise ProgramFault(Outcome.TIMEOUT, Rung.MEMORY_SAFETY, "still running")
    if how == "passes and breaks":
        raise DeviceLost
    if how == "raises":
        raise RuntimeError("no memory for the reference")
    if how == "raises and breaks":
        bench.device.broken = True
        raise RuntimeError("the context is lost")


@pytest.fixture
def child(monkeypatch):
    """(pipe, bench, ended): the loop runs in a thread; `ended` is set where the process would have ended."""
    bench, ended = Bench(), threading.Event()

    def end(code):
        ended.set()
        raise Ended

    def run():
        with contextlib.suppress(Ended, EOFError):
            cuda_child.main(theirs)
        theirs.close()

    monkeypatch.setattr(cuda_child, "_bench", lambda limits, ordinal: bench)
    monkeypatch.setattr(cuda_child, "examine", examine)
    monkeypatch.setattr(cuda_child.os, "_exit", end)
    ours, theirs = multiprocessing.Pipe()
    ours.send((Limits(), 0))
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ours.recv() == ("ready", 90)
    yield ours, bench, ended
    ours.close()
    thread.join(10)


def examined(pipe, how):
    """Messages up to the last about one program."""
    found = Findings(task="t", size="cpu", device="cuda", mode=Mode.QUICK)
    pipe.send(("examine", found, how))
    messages = [pipe.recv()]
    while messages[-1][0] == "rung":
        messages.append(pipe.recv())
    return messages


def test_rungs_are_told_before_what_was_found(child):
    pipe, bench, _ = child
    *rungs, (answer, found, fault, ends) = examined(pipe, "fine")
    assert rungs
    assert set(rungs) == {("rung", Rung.MEMORY_SAFETY)}
    assert (answer, found.peak_bytes, fault, ends) == ("done", 7, None, False)
    examined(pipe, "fine")
    assert bench.tidied >= 1  # after each answer, before the next examination begins


def test_a_fault_leaves_the_process_at_work(child):
    pipe, _, ended = child
    *_, (_, _, fault, ends) = examined(pipe, "faults")
    assert (fault.outcome, ends) == (Outcome.OUT_OF_BOUNDS, False)
    assert examined(pipe, "fine")[-1][2] is None
    assert not ended.is_set()


def test_a_process_without_room_says_so_and_ends(child):
    pipe, _, _ = child
    pipe.send(("outputs", "too large", "kb"))
    assert pipe.recv() == ("no room", "MemoryError: 8 GB 1 of 2 GB are free")
    with pytest.raises(EOFError):
        pipe.recv()


@pytest.mark.parametrize("how", ["breaks", "endless"])
def test_a_broken_context_or_a_kernel_still_running_ends_the_process(child, how):
    pipe, bench, ended = child
    *_, (answer, found, fault, ends) = examined(pipe, how)
    assert (answer, found.peak_bytes, ends) == ("done", 7, True)
    assert fault.outcome in (Outcome.OUT_OF_BOUNDS, Outcome.TIMEOUT)
    assert ended.wait(10)
    assert bench.tidied == 0  # giving memory back would wait for the kernel


def test_a_program_that_passed_and_then_lost_a_launch_keeps_its_verdict(child):
    pipe, bench, ended = child
    *_, (answer, found, fault, ends) = examined(pipe, "passes and breaks")
    assert (answer, found.peak_bytes, fault, ends) == ("done", 7, None, True)
    assert ended.wait(10)
    assert bench.tidied == 0


def test_an_error_of_ours_is_told_and_survived(child):
    pipe, _, ended = child
    assert examined(pipe, "raises")[-1] == ("error", "RuntimeError: no memory for the reference", False)
    assert examined(pipe, "fine")[-1][0] == "done"
    assert not ended.is_set()


def test_an_error_that_broke_the_context_ends_the_process(child):
    pipe, _, ended = child
    assert examined(pipe, "raises and breaks")[-1] == ("error", "RuntimeError: the context is lost", True)
    assert ended.wait(10)


def test_shapes_of_outputs_and_references_that_raise(child):
    pipe, _, _ = child
    pipe.send(("outputs", "fine", "cpu"))
    assert pipe.recv() == ("outputs", (((2, 3), "float32"),))
    pipe.send(("outputs", "raises", "cpu"))
    assert pipe.recv() == ("error", "ValueError: the reference does not take these shapes", False)


def test_what_kernels_print_goes_nowhere():
    text = "import os; from evaluator.judge import cuda_child; cuda_child._mute(); os.write(1, b'speed-up 99.00')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_gpu_that_cannot_be_used_is_one_message(monkeypatch):
    def fail(limits, ordinal):
        raise ImportError("No module named 'cupy'")

    monkeypatch.setattr(cuda_child, "_bench", fail)
    ours, theirs = multiprocessing.Pipe()
    ours.send((Limits(), 0))
    cuda_child.main(theirs)
    assert ours.recv() == ("error", "ImportError: No module named 'cupy'", True)
