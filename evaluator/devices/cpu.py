"""The `cpu` device: CUDA C++ compiled for the host and run by the emulator in confined processes.

    compiled = cpu.compile(plan, limits)
    with cpu.Session(compiled, limits) as session:
        report = session.run(inputs)
        cpu_us = session.time(replays=10)

A time on it says nothing about a GPU; it compares programs with each other on this machine.
"""

from evaluator.devices import launches, signature, tape
from evaluator.devices.compilation import compile_modules
from evaluator.devices.session import CompiledPlan, RunReport, Session
from evaluator.program.plan import Launch, Plan
from evaluator.records import Limits

__all__ = ["CompiledPlan", "RunReport", "Session", "compile"]


def compile(plan: Plan, limits: Limits) -> CompiledPlan:
    """Compile a plan's modules and check every launch against them.

    Raises ProgramFault: compile_error, unsupported, launch_error, out_of_memory, timeout, or evaluator_error where
    this machine has no compiler.
    """
    launches.check_memory(plan, limits)
    compiled = compile_modules(plan, limits)
    wanted = {}
    for (module, kernel), number in compiled.kernel_numbers.items():
        exported = compiled.facts.symbols[f"emulator_signature_{number}"]
        wanted[module, kernel] = signature.parameters(exported, plan.modules[module].source, kernel)
    arguments = launches.check(plan, wanted, compiled.static_shared_bytes)
    shared = (
        compiled.static_shared_bytes[step.module, step.kernel] + step.shared_bytes
        for step in plan.steps
        if isinstance(step, Launch)
    )
    return CompiledPlan(
        plan=plan,
        compiled=compiled,
        tape=tape.write(plan, compiled.kernel_numbers, arguments),
        shared_bytes=max(shared, default=0),
    )
