"""The process behind `Oracle`: JAX in 64-bit mode, answering one question at a time until its pipe closes."""

import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

import numpy as np

from evaluator.judge.expected import Accuracy, accuracies
from evaluator.tasks.task import Task

FLOAT32_INTEGERS = 2.0**24  # every integer up to here is a float32, so sums below it are exact in any order


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
        self._compiled: dict[tuple, Callable] = {}

    def outputs(self, task: Task, size: str) -> tuple[tuple[tuple[int, ...], str], ...]:
        from evaluator.nn.run import abstract

        return tuple((tuple(shape), dtype) for shape, dtype in abstract(task, size))

    def evaluate(
        self, task: Task, size: str, inputs: list[np.ndarray], integral: bool
    ) -> tuple[list[np.ndarray], tuple[Accuracy, ...], bool]:
        """Exact values, the reference's accuracy, and whether float32 sums behind them are exact in any order."""
        both = self._both(task, size)
        reference, exact = both(inputs, _widened(inputs))
        reference, exact = _own(reference), [np.asarray(x, np.float64) for x in _own(exact)]
        accuracy = accuracies(reference, exact)
        if not integral or not _whole(exact) or any(one.norm_error for one in accuracy):
            return exact, accuracy, False
        # With every operand's sign gone nothing cancels: this bounds every partial sum of a linear task.
        _, magnitudes = both(inputs, [np.abs(x) if x.dtype == np.float64 else x for x in _widened(inputs)])
        bounded = all(np.max(np.abs(x), initial=0) < FLOAT32_INTEGERS for x in _own(magnitudes))
        return exact, accuracy, bounded and self._affine(both, inputs)

    @staticmethod
    def _affine(both: Callable, inputs: list[np.ndarray]) -> bool:
        """Whether f(x) + f(0) = f(x / 2) + f(x - x / 2) in the first array (tanh is integral by saturation)."""
        wide = _widened(inputs)
        first = next((i for i, x in enumerate(wide) if x.dtype == np.float64), None)
        if first is None:
            return False
        weights = np.random.Generator(np.random.Philox(key=[0, 0])).uniform(size=wide[first].shape)

        def at(x: np.ndarray) -> list[np.ndarray]:
            return _own(both(inputs, [*wide[:first], x, *wide[first + 1 :]])[1])

        part = wide[first] * weights
        sums = zip(at(wide[first]), at(np.zeros_like(part)), at(part), at(wide[first] - part), strict=True)
        return all(np.allclose(whole + zero, one + other, rtol=1e-9, atol=1e-6) for whole, zero, one, other in sums)

    def _both(self, task: Task, size: str) -> Callable:
        """One compiled function for both precisions: XLA's fixed cost is paid once."""
        import jax

        from evaluator.nn import jax_nn
        from evaluator.nn.run import run

        source = task.source_at(size)
        key = (source, task.arrays_at(size))
        if key not in self._compiled:
            if len(self._compiled) >= self.KEPT:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[key] = jax.jit(lambda low, high: (run(source, jax_nn, low), run(source, jax_nn, high)))
        return self._compiled[key]


def _widened(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [x.astype(np.float64) if np.issubdtype(x.dtype, np.floating) else x for x in inputs]


def _own(arrays: Sequence) -> list[np.ndarray]:
    return [np.array(x) for x in arrays]


def _whole(arrays: Sequence[np.ndarray]) -> bool:
    return all(bool(np.all(x == np.rint(x))) for x in arrays)
