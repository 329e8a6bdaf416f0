"""What the fuzzer feeds, and the only ways in which it may end. Each target gives the name of an input's outcome."""

import contextlib
import json
import random
from collections.abc import Callable, Iterator

import mutations
import numpy as np
import seeds

from evaluator.devices import cpu
from evaluator.devices.cuda import compilation, toolkit
from evaluator.devices.cuda.compiler import Compiler
from evaluator.devices.layout import regions
from evaluator.devices.poison import numpy_dtype
from evaluator.devices.runner_process import ORDERS, RunnerProcess, is_fault
from evaluator.judge.findings import shown
from evaluator.judge.ladder import Judge
from evaluator.program import cuda_text, cuda_tokens, docstring, emulator_gaps, identity, plan, plan_reader
from evaluator.program.extract import extract
from evaluator.program.screen import screen
from evaluator.program.trace import Tracer
from evaluator.records import Limits, Outcome, ProcessLost, ProgramFault, Rung
from evaluator.tasks.task import Array, Task

LIMITS = Limits(trace_s=2.0, compile_s=5.0, kernel_s=0.3, memory_bytes=1 << 26)
ARRAYS = [Array("x", (37, 65)), Array("y", (65,))]
OUTPUTS = [((37, 65), "float32")]
RELU = "def forward(nn, x):\n    return nn.relu(x)\n"
TASK = Task(id="relu", name="relu", family="elementwise", source=RELU, sizes={"cpu": (Array("x", (37, 65)),)})
JUDGED = '''import cupy as cp

kernel = cp.RawKernel(r"""
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float kept[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  float v = __shfl_sync(0xffffffffu, kept[threadIdx.x], threadIdx.x % 32);
  if (i < n) y[i] = fmaxf(v, 0.0f);
}
""", "k")


def forward(x):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, y, x.size))
    return y
'''

Target = Callable[[random.Random], str]


class Broken(Exception):
    """An ending that a hostile input must not bring about; the message holds the input."""


@contextlib.contextmanager
def targets() -> Iterator[dict[str, Target]]:
    """The targets by the kind of their input. They own processes, which end with the context."""
    with Tracer(LIMITS) as tracer, Judge(limits=LIMITS) as judge, contextlib.ExitStack() as stack:
        compiled = cpu.compile(seeds.plan(), LIMITS)
        found: dict[str, Target] = {
            "completions": lambda rng: completion(tracer, rng),
            "programs": lambda rng: program(tracer, rng),
            "CUDA texts": cuda,
            "plans": lambda rng: hostile_plan(compiled, rng),
            "tapes": lambda rng: hostile_tape(compiled, rng),
            "judged programs": lambda rng: judged(judge, rng),
        }
        with contextlib.suppress(ProgramFault):  # no NVRTC here
            compiler = stack.enter_context(Compiler(LIMITS, toolkit.find()))
            found["texts for NVRTC"] = lambda rng: for_nvrtc(compiler, rng)
        yield found


def completion(tracer: Tracer, rng: random.Random) -> str:
    """Extract, screen and, where both let it pass, trace."""
    text = seeds.completion(_program(rng))
    text = mutations.mutated_text(rng, text, (*mutations.TEXT, mutations.odd_fences))
    with _endings(text) as ending:
        ending.append("extracted")
        found = extract(text)
        ending.append("screened")
        screen(found, LIMITS)
        ending.append("traced")
        tracer.trace(found, ARRAYS[: rng.choice((1, 2))], OUTPUTS)
        ending.append("passed")
    return ending[-1]


def program(tracer: Tracer, rng: random.Random) -> str:
    """Trace alone, as if the screen had let everything pass, and what else reads a program's text."""
    text = mutations.mutated_text(rng, _program(rng))
    with _endings(text) as ending:
        identity.sha256(text)
        with contextlib.suppress(ProgramFault):
            docstring.facts(text)
        tracer.trace(text, ARRAYS[: rng.choice((1, 2))], OUTPUTS)
        ending.append("passed")
    return ending[-1]


def cuda(rng: random.Random) -> str:
    """Everything that reads CUDA text without a compiler."""
    pieces = _program(rng).split("'''")
    text = mutations.mutated_text(rng, pieces[1] if len(pieces) > 1 else pieces[0])[: LIMITS.source_bytes]
    with _endings(text) as ending:
        cuda_tokens.directives(cuda_tokens.tokenize(text))
        cuda_text.kernels(text)
        emulator_gaps.gaps(text)
        identity.token_stream(text)
        ending.append("passed")
    return ending[-1]


def hostile_plan(compiled: cpu.CompiledPlan, rng: random.Random) -> str:
    """The plan reader, and the emulator for what it lets pass. Plans whose kernels changed are read only."""
    record = mutations.other_plan(rng, seeds.plan_record())
    if rng.random() < 0.6:
        record = mutations.mutated_record(rng, record)
    text = json.dumps(record)
    if rng.random() < 0.1:
        text = mutations.mutated_text(rng, text)
    with _endings(text, ValueError) as ending:
        ending.append("read")
        found = plan_reader.from_json(text)
        if plan_reader.from_json(plan.to_json(found)) != found and "nan" not in text:
            raise Broken(f"a plan changes on its way: {text!r}")
        ending.append("run")
        if found.modules != compiled.plan.modules:
            return "read only"
        made = cpu.compile(found, LIMITS)
        with cpu.Session(made, LIMITS) as session:
            session.run([np.ones(each.shape, numpy_dtype(each.dtype)) for each in found.inputs])
        ending.append("passed")
    return ending[-1]


def hostile_tape(compiled: cpu.CompiledPlan, rng: random.Random) -> str:
    """The runner's own reader and executor, which only ever see tapes of ours."""
    content = seeds.packed(mutations.mutated_tape(rng, seeds.words(compiled.tape)))
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content) + 1)]
    with _endings(content.hex()) as ending:
        ending.append("started")
        runner = RunnerProcess(
            str(compiled.compiled.path),
            content,
            sum(region.region_bytes for region in regions(compiled.plan)),
            threads=1,
            static_shared_bytes=compiled.compiled.facts.thread_local_bytes,
            cpu_s=5,
        )
        try:
            report = runner.ready
            if not is_fault(report):
                order = rng.choice(sorted(ORDERS))
                report = runner.run(
                    order=order, seed=1, guard="right", deadline_s=LIMITS.kernel_s, rung=Rung.TIMING, judged=True
                )
            ending.append(report.kind.name.lower() if is_fault(report) else "passed")
        finally:
            runner.close()
    return ending[-1]


def for_nvrtc(compiler: Compiler, rng: random.Random) -> str:
    """NVRTC, which ends with a signal now and then; its process is then another one."""
    text = mutations.mutated_text(rng, JUDGED.split('"""')[1])
    with _endings(text) as ending:
        compilation.compile_module(compiler, plan.Module(text, (), ("k",)), 90)
        ending.append("passed")
    return ending[-1]


def judged(judge: Judge, rng: random.Random) -> str:
    """The whole ladder but timing."""
    head, source, tail = JUDGED.split('"""')
    if rng.random() < 0.7:
        text = f'{head}"""{mutations.mutated_text(rng, source)}"""{tail}'
    else:
        text = mutations.mutated_text(rng, JUDGED)
    verdict = judge.check(text, TASK, timing=False, cases=("negated",), plain=JUDGED)
    if verdict.outcome is Outcome.EVALUATOR_ERROR or verdict.message != shown(verdict.message):
        raise Broken(f"{verdict.rung}: {verdict.message}: {text!r}")
    return verdict.outcome.value


@contextlib.contextmanager
def _endings(content: str, *allowed: type[Exception]) -> Iterator[list[str]]:
    """Collects names of stages; a fault of the program adds its outcome, anything else is broken."""
    ending = [""]
    try:
        yield ending
    except ProgramFault as error:
        if isinstance(error, ProcessLost) or error.fault.outcome is Outcome.EVALUATOR_ERROR:
            raise Broken(f"{error.fault}: {content[:100_000]!r}") from error
        _check_fault(error, content)
        ending.append(error.fault.outcome.value)
    except allowed as error:
        ending.append(type(error).__name__)
    except Broken:
        raise
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}: {content[:100_000]!r}") from error


def _check_fault(error: ProgramFault, content: str) -> None:
    fault = error.fault
    if not fault.message or len(fault.message) > 100_000 or (fault.line is not None and fault.line < 0):
        raise Broken(f"{fault}: {content[:100_000]!r}")


def _program(rng: random.Random) -> str:
    """Short ones are likelier: most of a long program is far from what is decided about it."""
    known = seeds.programs()
    return known[min(rng.randrange(len(known)), rng.randrange(len(known)))]
