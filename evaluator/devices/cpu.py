"""The `cpu` device: CUDA C++ compiled for the host and run by the emulator in confined processes.

    compiled = cpu.compile(plan, limits)
    with cpu.Session(compiled, limits) as session:
        report = session.run(inputs)
        cpu_us = session.time(replays=10)

A time on it says nothing about a GPU; it compares programs with each other on this machine.
"""

from evaluator.devices import signature, tape
from evaluator.devices.compilation import STATIC_SHARED_BYTES, compile_modules
from evaluator.devices.session import CompiledPlan, RunReport, Session
from evaluator.program.launch_limits import MAX_SHARED_BYTES
from evaluator.program.plan import Launch, Plan
from evaluator.records import Limits, Outcome, ProgramFault, Rung

__all__ = ["CompiledPlan", "RunReport", "Session", "compile"]


def compile(plan: Plan, limits: Limits) -> CompiledPlan:
    """Compile a plan's modules and check every launch against them.

    Raises ProgramFault: compile_error, unsupported, launch_error, out_of_memory, timeout, or evaluator_error where
    this machine has no compiler.
    """
    if plan.nbytes > limits.memory_bytes:
        message = f"the plan's buffers take {plan.nbytes} bytes; at most {limits.memory_bytes} are allowed"
        raise ProgramFault(Outcome.OUT_OF_MEMORY, Rung.LAUNCH, message)
    compiled = compile_modules(plan, limits)
    wanted = {}
    for (module, kernel), number in compiled.kernel_numbers.items():
        exported = compiled.facts.symbols[f"emulator_signature_{number}"]
        wanted[module, kernel] = signature.parameters(exported, plan.modules[module].source, kernel)
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    arguments = []
    for launch in launches:
        _check_shared(launch, compiled.static_shared_bytes[launch.module, launch.kernel])
        arguments.append(signature.check(launch, wanted[launch.module, launch.kernel]))
    return CompiledPlan(
        plan=plan,
        compiled=compiled,
        tape=tape.write(plan, compiled.kernel_numbers, arguments),
        shared_bytes=max(
            (compiled.static_shared_bytes[step.module, step.kernel] + step.shared_bytes for step in launches), default=0
        ),
    )


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
