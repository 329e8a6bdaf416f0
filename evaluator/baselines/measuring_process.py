"""The process that measures one baseline and ends: a library that takes all memory, or crashes, costs one record."""

import dataclasses
from collections.abc import Sequence
from multiprocessing.connection import Connection

from evaluator import _core
from evaluator.baselines.kinds import GRAPH, XLA
from evaluator.baselines.runner import Array, Runner
from evaluator.baselines.sampling import Effort, Sampled, sample
from evaluator.judge.accuracy import Compare
from evaluator.judge.bounds import describe, measure
from evaluator.judge.expected import Expected
from evaluator.records import Limits
from evaluator.tasks.task import Task

_MESSAGE_CHARACTERS = 400


class WrongValues(Exception):
    """The baseline does not compute what the task asks for; the text says where."""


@dataclasses.dataclass(frozen=True)
class Request:
    baseline: str
    task: Task
    size: str
    device: str
    seed: int  # of the inputs
    effort: Effort
    expected: Expected | None  # inputs and exact outputs; None on `cuda`, where this process makes them on the device


@dataclasses.dataclass(frozen=True)
class Answer:
    sampled: Sampled | None  # None where `error` says why
    clock: str
    error: str | None


def main(pipe: Connection) -> None:
    """Receives one request and sends one answer."""
    request: Request = pipe.recv()
    try:
        found, clock = _on_cuda(request) if request.device == "cuda" else _on_cpu(request)
        answer = Answer(found, clock, None)
    except Exception as error:  # a library may raise anything
        text = " ".join(str(error).split())[:_MESSAGE_CHARACTERS]
        answer = Answer(None, "", text if isinstance(error, WrongValues) else f"{type(error).__name__}: {text}")
    pipe.send(answer)


def require_right(seen: Sequence[Array], expected: Expected, task: Task, compare: Compare) -> None:
    """That outputs are of the task's shapes and dtypes and within the bounds that programs are held to: WrongValues."""
    shapes = [(tuple(x.shape), x.dtype.name) for x in seen]
    due = [(tuple(x.shape), one.dtype) for x, one in zip(expected.exact, expected.accuracies, strict=True)]
    if shapes != due:
        raise WrongValues(f"seen outputs {shapes}, expected {due}")
    for finding in measure(seen, expected, task.family, task.precision, compare):
        if not finding.ok:
            shape = tuple(seen[finding.output].shape)
            raise WrongValues(f"outputs are wrong: {describe(finding, 'plain', 0, shape)}")


def _on_cpu(request: Request) -> tuple[Sampled, str]:
    from evaluator.baselines import pytorch, xla

    expected, task = request.expected, request.task
    assert expected is not None
    source = task.source_at(request.size)
    if request.baseline == XLA:
        runner = xla.on_host(source, task.precision, expected.inputs)
    else:
        runner = pytorch.on_host(request.baseline, source, task.precision, expected.inputs)
    require_right(runner.outputs(), expected, task, _core.compare)
    return sample(runner.time_us, request.effort), runner.clock


def _on_cuda(request: Request) -> tuple[Sampled, str]:
    """Exact values first, and their memory back before any time is taken."""
    from evaluator.judge.cuda_workbench import CudaWorkbench

    bench = CudaWorkbench(Limits.for_device("cuda"))
    expected = bench.expected(request.task, request.size, "plain", request.seed)
    inputs = expected.inputs
    bench.make_room()
    bench.device.wait(60.0)
    runner = _runner_on_cuda(bench, request, inputs)
    require_right(runner.outputs(), expected, request.task, bench.compare)
    del expected
    bench.make_room()
    return sample(runner.time_us, request.effort), runner.clock


def _runner_on_cuda(bench, request: Request, inputs: Sequence[Array]) -> Runner:
    from evaluator.baselines import graph, pytorch, xla

    source, precision = request.task.source_at(request.size), request.task.precision
    if request.baseline == GRAPH:
        return graph.on_gpu(bench, source, inputs)
    if request.baseline == XLA:
        return xla.on_gpu(bench, source, precision, inputs)
    return pytorch.on_gpu(bench, request.baseline, source, precision, inputs)
