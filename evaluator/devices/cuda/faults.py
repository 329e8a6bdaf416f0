"""What a failed driver call says about the program that was running."""

from evaluator import _core
from evaluator.records import Outcome, ProgramFault, Rung

# CUresult. The first four leave the context as it was.
_INVALID_VALUE, _OUT_OF_MEMORY, _OUT_OF_RESOURCES, _INVALID_CLUSTER = 1, 2, 701, 912
_ILLEGAL_ADDRESS, _ILLEGAL_INSTRUCTION, _MISALIGNED, _INVALID_ADDRESS_SPACE, _INVALID_PC, _LAUNCH_FAILED = (
    700, 715, 716, 717, 718, 719,
)  # fmt: skip
_ASSERT, _HARDWARE_STACK, _LAUNCH_TIMEOUT = 710, 714, 702

_OUTCOMES = {
    _INVALID_VALUE: (
        Outcome.LAUNCH_ERROR,
        "the device does not take the launch, as with more threads than launch bounds",
    ),
    _OUT_OF_MEMORY: (Outcome.OUT_OF_MEMORY, "the device is out of memory"),
    _OUT_OF_RESOURCES: (Outcome.LAUNCH_ERROR, "a block needs more registers or shared memory than the device has"),
    _INVALID_CLUSTER: (Outcome.LAUNCH_ERROR, "the device does not take the cluster: it must divide the grid"),
    _ILLEGAL_ADDRESS: (Outcome.OUT_OF_BOUNDS, "a kernel accessed memory outside its buffers, or its stack overflowed"),
    _MISALIGNED: (Outcome.MISALIGNED, "a kernel accessed an address that is no multiple of the access's size"),
    _INVALID_ADDRESS_SPACE: (Outcome.OUT_OF_BOUNDS, "a kernel used an address of the wrong memory space"),
    _ASSERT: (Outcome.CRASHED, "an assertion in a kernel failed"),
    _ILLEGAL_INSTRUCTION: (Outcome.CRASHED, "a kernel executed an illegal instruction or trapped"),
    _HARDWARE_STACK: (Outcome.CRASHED, "a kernel overflowed its stack"),
    _INVALID_PC: (Outcome.CRASHED, "a kernel jumped outside its code"),
    _LAUNCH_FAILED: (Outcome.CRASHED, "a kernel failed on the device"),
    _LAUNCH_TIMEOUT: (Outcome.TIMEOUT, "the driver ended a kernel that ran too long"),
}

_PATIENCE_S = 1.0  # for work that was queued before the fault


def survived(device: _core.CudaDevice) -> bool:
    """Whether the context is sound and idle: neither lost, nor busy with a kernel that does not end."""
    try:
        device.wait(_PATIENCE_S)
        device.memory  # noqa: B018  asks the driver, which answers with the context's error
    except (_core.CudaError, _core.CudaDeadline):
        return False
    return True


def fault(error: RuntimeError, rung: Rung) -> ProgramFault:
    """The fault of the program for a CudaError or CudaDeadline that its steps raised."""
    if isinstance(error, _core.CudaDeadline):
        return ProgramFault(Outcome.TIMEOUT, rung, f"the program is {error}")
    text, code = error.args
    if code not in _OUTCOMES:
        return ProgramFault(Outcome.EVALUATOR_ERROR, rung, text)
    outcome, meaning = _OUTCOMES[code]
    return ProgramFault(outcome, rung, f"{meaning}; {text}")
