"""Whether a plan's launches fit its compiled kernels: memory, shared memory, arguments. The same on every device."""

from collections.abc import Mapping

from evaluator.devices import signature
from evaluator.devices.signature import Parameter, Value
from evaluator.program.launch_limits import MAX_SHARED_BYTES
from evaluator.program.plan import Launch, Plan, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung

STATIC_SHARED_BYTES = 48 * 1024  # what a device lets a kernel declare; more must be dynamic

Kernel = tuple[int, str]  # index of the module, name or name expression


def check_memory(plan: Plan, limits: Limits, variables: int = 0) -> None:
    """Raises ProgramFault `out_of_memory` where buffers and `variables` bytes of modules exceed what limits allow."""
    if plan.nbytes + variables > limits.memory_bytes:
        beside = f" and the variables of its modules {variables}" if variables else ""
        message = f"the plan's buffers take {plan.nbytes} bytes{beside}; at most {limits.memory_bytes} are allowed"
        raise ProgramFault(Outcome.OUT_OF_MEMORY, Rung.LAUNCH, message)


def check(
    plan: Plan, wanted: Mapping[Kernel, tuple[Parameter, ...]], static_shared_bytes: Mapping[Kernel, int]
) -> list[tuple[View | Value, ...]]:
    """The arguments of every launch in its kernel's own types. Raises ProgramFault `launch_error` or `unsupported`."""
    arguments = []
    for launch in plan.steps:
        if isinstance(launch, Launch):
            kernel = (launch.module, launch.kernel)
            _check_shared(launch, static_shared_bytes[kernel])
            arguments.append(signature.check(launch, wanted[kernel]))
    return arguments


def _check_shared(launch: Launch, static_bytes: int) -> None:
    if static_bytes > STATIC_SHARED_BYTES:
        message = (
            f"kernel {launch.kernel!r} declares {static_bytes} bytes of static shared memory; a device has "
            f"{STATIC_SHARED_BYTES}, more must be dynamic (extern __shared__)"
        )
        raise ProgramFault(Outcome.LAUNCH_ERROR, Rung.LAUNCH, message, launch.line)
    if static_bytes + launch.shared_bytes > MAX_SHARED_BYTES:
        message = (
            f"kernel {launch.kernel!r} needs {static_bytes} static and {launch.shared_bytes} dynamic bytes of shared "
            f"memory; a block can have {MAX_SHARED_BYTES} together"
        )
        raise ProgramFault(Outcome.LAUNCH_ERROR, Rung.LAUNCH, message, launch.line)
