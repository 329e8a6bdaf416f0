"""The oracle: a task's own reference in float64, in a JAX process of its own because 64-bit mode is process-wide."""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from evaluator.judge import oracle_child
from evaluator.judge.cases import inputs_for
from evaluator.judge.child import Child
from evaluator.judge.expected import Expected
from evaluator.tasks.task import Task

OutputSpec = tuple[tuple[int, ...], str]  # shape, dtype


class OracleError(RuntimeError):
    """The oracle could not answer: a fault of ours or of the task's text, never of a program."""


class Oracle:
    """Expected values of tasks, from a child that starts at the first question and is restarted when it fails.

    `cache_bytes` bounds what is kept of the answers; the least recently asked go first. `deadline_s` is the longest
    one answer may take, compilation by XLA included.
    """

    def __init__(self, cache_bytes: int = 384 << 20, deadline_s: float = 120.0):
        self._cache_bytes = cache_bytes
        self._deadline_s = deadline_s
        self._cache: collections.OrderedDict[tuple, Expected] = collections.OrderedDict()
        self._cached_bytes = 0
        self._outputs: dict[tuple, tuple[OutputSpec, ...]] = {}
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
        key = (task.source_at(size), task.arrays_at(size))
        if key not in self._outputs:
            self._outputs[key] = self._ask("outputs", task, size, None)
        return self._outputs[key]

    def expected(self, task: Task, size: str, case: str, seed: int, *, once: bool = False) -> Expected:
        """Inputs and expected outputs of a case. Raises OracleError where the reference cannot be run.

        `once`: nobody will ask for this draw again, so the answer is not kept.
        """
        # Generated tasks may share an id, so the text, the arrays and the precision class are the key.
        key = (task.source_at(size), task.arrays_at(size), task.precision, case, seed)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        answer = self.answer(task, size, inputs_for(task, size, case, seed), integral=case == "integers")
        if not once:
            self._keep(key, answer)
        return answer

    def answer(self, task: Task, size: str, inputs: Sequence[np.ndarray], integral: bool = False) -> Expected:
        """Expected outputs on the given inputs, not cached."""
        found: Expected = self._ask("evaluate", task, size, (list(inputs), integral))
        for array in (*inputs, *found.exact):
            array.flags.writeable = False
        return dataclasses.replace(found, inputs=tuple(inputs))

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
