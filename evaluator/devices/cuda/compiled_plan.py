"""A plan compiled for one architecture: cubins, and each launch's arguments in its kernel's own types. Needs no GPU."""

import dataclasses

from evaluator.devices import launches, signature
from evaluator.devices.cuda import cubin
from evaluator.devices.cuda.compilation import CompiledModule, KernelReport, compile_modules
from evaluator.devices.cuda.compiler import Compiler
from evaluator.devices.signature import Value
from evaluator.program.plan import Plan, View
from evaluator.records import Limits

Argument = View | bytes  # where an array lies, or a number's bytes


@dataclasses.dataclass(frozen=True)
class CompiledPlan:
    """A plan with what executes it. Can be pickled; a process with a device makes sessions of it."""

    plan: Plan
    modules: tuple[CompiledModule, ...]
    arguments: tuple[tuple[Argument, ...], ...]  # of every launch, in order
    architecture: int  # 90 is sm_90

    @property
    def compile_ms(self) -> float:
        return sum(module.compile_ms for module in self.modules)

    @property
    def report(self) -> dict[str, int | None]:
        """Registers, spills and shared bytes, as in a verdict: the most of any kernel. Empty where there is none."""
        reports = [report for module in self.modules for report in module.reports.values()]
        names = [field.name for field in dataclasses.fields(KernelReport)] if reports else []
        return {name: max(getattr(report, name) for report in reports) for name in names}


def compile(plan: Plan, compiler: Compiler, architecture: int, limits: Limits) -> CompiledPlan:
    """Compile a plan's modules and check every launch against them.

    Raises ProgramFault: compile_error, unsupported, launch_error, out_of_memory, timeout or evaluator_error.
    """
    launches.check_memory(plan, limits)
    modules = compile_modules(compiler, plan, architecture)
    variables = (variable for module in modules for variable in cubin.variables(module.cubin))
    launches.check_memory(plan, limits, sum(variable.nbytes for variable in variables if variable.writable))
    wanted, shared = {}, {}
    for number, module in enumerate(modules):
        for kernel, exported in module.signatures.items():
            wanted[number, kernel] = signature.parameters(exported, plan.modules[number].source, kernel)
            shared[number, kernel] = module.reports[kernel].shared_bytes
    checked = launches.check(plan, wanted, shared)
    kernels = [(step.module, step.kernel) for step in plan.steps if isinstance(step, launches.Launch)]
    arguments = tuple(
        tuple(_packed(argument, parameter.nbytes) for argument, parameter in zip(some, wanted[kernel], strict=True))
        for some, kernel in zip(checked, kernels, strict=True)
    )
    return CompiledPlan(plan=plan, modules=tuple(modules), arguments=arguments, architecture=architecture)


def _packed(argument: View | Value, nbytes: int) -> Argument:
    return argument if isinstance(argument, View) else argument.word.to_bytes(8, "little")[:nbytes]
