"""The oracle: a task's own reference in float64, in a JAX process of its own because 64-bit mode is process-wide."""

import collections
import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from evaluator import _core
from evaluator.judge import oracle_child
from evaluator.judge.cases import inputs_for
from evaluator.judge.child import Child
from evaluator.tasks.task import Task

OutputSpec = tuple[tuple[int, ...], str]  # shape, dtype


class OracleError(RuntimeError):
    """The oracle could not answer: a fault of ours or of the task's text, never of a program."""


@dataclasses.dataclass(frozen=True)
class Expected:
    """What one case must give."""

    inputs: tuple[np.ndarray, ...]  # inputs then parameters, dtypes as in the task; never written to
    reference: tuple[np.ndarray, ...]  # the reference at the task's own precision
    exact: tuple[np.ndarray, ...]  # the reference on the same inputs in float64
    integral: bool  # any order of summation is exact in float32 here, so that equality is due

    @functools.cached_property
    def reference_errors(self) -> tuple[_core.Comparison, ...]:
        """How far the reference at its own precision is from the exact values, output by output."""
        return tuple(map(_core.compare, map(np.ascontiguousarray, self.reference), self.exact))

    @functools.cached_property
    def usable(self) -> bool:
        """Whether the reference itself stays finite wherever the exact result fits its type."""
        return all(map(_no_worse, self.reference, self.exact))

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in (*self.inputs, *self.reference, *self.exact))


class Oracle:
    """Expected values of tasks, from a child that starts at the first question and is restarted when it fails.

    `cache_bytes` bounds what is kept of the answers; the least recently asked go first. `deadline_s` is the longest
    one answer may take, compilation by XLA included.
    """

    def __init__(self, cache_bytes: int = 256 << 20, deadline_s: float = 120.0):
        self._cache_bytes = cache_bytes
        self._deadline_s = deadline_s
        self._cache: collections.OrderedDict[tuple, Expected] = collections.OrderedDict()
        self._cached_bytes = 0
        self._outputs: dict[tuple[str, str, str], tuple[OutputSpec, ...]] = {}
        self._child: Child | None = None

    def __enter__(self) -> "Oracle":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Starts the child now, so that its imports overlap with other work. Returns at once."""
        if self._child is None or not self._child.alive:
            self.close()
            self._child = Child(oracle_child.main)

    def close(self) -> None:
        """Ends the child. The cache stays, and the next question starts another."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def outputs(self, task: Task, size: str) -> tuple[OutputSpec, ...]:
        """Shape and dtype of each output of a task at a size."""
        key = (task.id, task.source_at(size), size)
        if key not in self._outputs:
            self._outputs[key] = self._ask("outputs", task, size, None)
        return self._outputs[key]

    def expected(self, task: Task, size: str, case: str, seed: int) -> Expected:
        """Inputs and expected outputs of a case. Raises OracleError where the reference cannot be run."""
        # Generated tasks may share an id, so the text and the arrays belong to the key.
        key = (task.id, task.source_at(size), task.arrays_at(size), case, seed)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        answer = self.answer(task, size, inputs_for(task, size, case, seed), integral=case == "integers")
        self._keep(key, answer)
        return answer

    def answer(self, task: Task, size: str, inputs: Sequence[np.ndarray], integral: bool = False) -> Expected:
        """Expected outputs on the given inputs, not cached."""
        reference, exact, summable = self._ask("evaluate", task, size, (list(inputs), integral))
        for array in (*inputs, *reference, *exact):
            array.flags.writeable = False
        return Expected(tuple(inputs), tuple(reference), tuple(exact), summable)

    def _keep(self, key: tuple, answer: Expected) -> None:
        if answer.nbytes > self._cache_bytes:
            return
        self._cache[key] = answer
        self._cached_bytes += answer.nbytes
        while self._cached_bytes > self._cache_bytes:
            _, oldest = self._cache.popitem(last=False)
            self._cached_bytes -= oldest.nbytes

    def _ask(self, question: str, task: Task, size: str, payload: object):
        """One exchange with the child; a child that is lost is replaced once and asked again."""
        for attempt in (1, 2):
            self.start()
            assert self._child is not None
            pipe = self._child.pipe
            try:
                pipe.send((question, task, size, payload))
                if not pipe.poll(self._deadline_s):
                    raise OracleError(
                        f"the reference of task {task.id} took longer than {self._deadline_s:.0f} s at size {size}"
                    )
                good, value = pipe.recv()
                break
            except (EOFError, OSError) as error:
                self.close()
                if attempt == 2:
                    raise OracleError(f"the oracle process was lost twice on task {task.id} at size {size}") from error
            except OracleError:
                self.close()
                raise
        if not good:
            raise OracleError(f"the reference of task {task.id} failed at size {size}: {value}")
        return value


def _no_worse(reference: np.ndarray, exact: np.ndarray) -> bool:
    if not np.issubdtype(reference.dtype, np.floating):
        return True
    with np.errstate(over="ignore"):  # infinity is the right answer beyond the type's range
        return bool(np.all(np.isfinite(reference) | ~np.isfinite(exact.astype(reference.dtype))))
