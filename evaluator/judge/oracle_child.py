"""The process behind `Oracle`: JAX in 64-bit mode, answering one question at a time until its pipe closes."""

import dataclasses
import os
from multiprocessing.connection import Connection

import numpy as np

from evaluator import _core
from evaluator.judge.expected import Expected, Forward, evaluate
from evaluator.tasks.task import Task


def main(pipe: Connection) -> None:
    """Answers (question, task, size, payload) with (True, value) or (False, message), until EOFError."""
    os.environ["JAX_PLATFORMS"] = "cpu"  # the device is the judge's; a GPU's memory is not for the oracle
    os.environ.pop("XLA_FLAGS", None)  # simulated devices of a test run would only cost start-up here
    import jax

    jax.config.update("jax_enable_x64", True)
    evaluator = Evaluator()
    while True:
        question, task, size, payload = pipe.recv()
        try:
            answer = (
                evaluator.outputs(task, size) if question == "outputs" else evaluator.evaluate(task, size, *payload)
            )
            pipe.send((True, answer))
        except Exception as error:  # a user's task may raise anything
            pipe.send((False, f"{type(error).__name__}: {error}"))


class Evaluator:
    """Compiled references, the newest few kept."""

    KEPT = 32

    def __init__(self) -> None:
        self._compiled: dict[tuple, Forward] = {}

    def outputs(self, task: Task, size: str) -> tuple[tuple[tuple[int, ...], str], ...]:
        from evaluator.nn.run import abstract

        if task.reference == "torch":
            outputs = self._forward(task, size)([np.zeros(a.shape, a.dtype) for a in task.arrays_at(size)])
            return tuple((output.shape, str(output.dtype)) for output in outputs)
        return tuple((tuple(shape), dtype) for shape, dtype in abstract(task, size))

    def evaluate(self, task: Task, size: str, inputs: list[np.ndarray], integral: bool) -> Expected:
        """Without the inputs, which the parent has."""
        coarse = task.precision != "fp32"
        found = evaluate(inputs, self._forward(task, size), _core.compare, integral=integral, coarse=coarse)
        return dataclasses.replace(found, inputs=())

    def _forward(self, task: Task, size: str) -> Forward:
        """The reference, compiled once for each precision that it is asked for."""
        source = task.source_at(size)
        key = (source, task.arrays_at(size))
        if key not in self._compiled:
            if len(self._compiled) >= self.KEPT:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[key] = _in_torch(source) if task.reference == "torch" else _in_jax(source)
        return self._compiled[key]


def _in_jax(source: str) -> Forward:
    import jax

    from evaluator.nn import jax_nn
    from evaluator.nn.run import run

    jitted = jax.jit(lambda arrays: run(source, jax_nn, arrays))
    return lambda arrays: [np.array(x) for x in jitted(list(arrays))]


def _in_torch(source: str) -> Forward:
    from evaluator.nn.torch_module import TorchModule  # needs PyTorch, which only tasks by path ask for

    return TorchModule(source).run
