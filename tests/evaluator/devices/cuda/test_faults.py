"""What the driver says against a program becomes an outcome with words a program's author understands."""

import pytest

from evaluator import _core
from evaluator.devices.cuda import faults
from evaluator.records import Outcome, Rung


@pytest.mark.parametrize(
    ("code", "outcome", "words"),
    [
        (1, Outcome.LAUNCH_ERROR, "does not take the launch"),
        (2, Outcome.OUT_OF_MEMORY, "out of memory"),
        (701, Outcome.LAUNCH_ERROR, "more registers or shared memory"),
        (912, Outcome.LAUNCH_ERROR, "divide the grid"),
        (700, Outcome.OUT_OF_BOUNDS, "outside its buffers"),
        (716, Outcome.MISALIGNED, "no multiple of the access's size"),
        (717, Outcome.OUT_OF_BOUNDS, "wrong memory space"),
        (710, Outcome.CRASHED, "assertion"),
        (715, Outcome.CRASHED, "trapped"),
        (714, Outcome.CRASHED, "stack"),
        (718, Outcome.CRASHED, "outside its code"),
        (719, Outcome.CRASHED, "failed on the device"),
        (702, Outcome.TIMEOUT, "ran too long"),
    ],
)
def test_a_driver_error_is_a_fault_of_the_program(code, outcome, words):
    fault = faults.fault(_core.CudaError("cuStreamQuery: CUDA_ERROR", code), Rung.TIMING).fault
    assert (fault.outcome, fault.rung) == (outcome, Rung.TIMING)
    assert words in fault.message
    assert "cuStreamQuery" in fault.message


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(None, True), (_core.CudaError("cuStreamQuery", 700), False), (_core.CudaDeadline("still running"), False)],
)
def test_a_device_survives_unless_its_context_is_lost_or_busy(seen, expected):
    class Device:
        memory = (1, 2)

        def wait(self, deadline_s):
            if seen:
                raise seen

    assert faults.survived(Device()) is expected


def test_an_error_of_no_program_is_ours():
    fault = faults.fault(_core.CudaError("cuInit: CUDA_ERROR_NO_DEVICE", 100), Rung.LAUNCH).fault
    assert (fault.outcome, fault.message) == (Outcome.EVALUATOR_ERROR, "cuInit: CUDA_ERROR_NO_DEVICE")


def test_a_kernel_that_does_not_end_is_a_timeout():
    fault = faults.fault(_core.CudaDeadline("still running after 1 s"), Rung.MEMORY_SAFETY).fault
    assert (fault.outcome, fault.message) == (Outcome.TIMEOUT, "the program is still running after 1 s")
