"""Cases whose expected values are kept on the device, since every program of a task is tried on the same ones.

A task of large arrays has more cases than there is room for, and each program asks for all of them in the same order:
the least recently used one is always the next that is needed. So what the last two programs used stays, and what finds
no room is made anew each time, but for its figures, which take no room.
"""

import collections
import dataclasses
from collections.abc import Callable, Sequence

from evaluator.judge.accuracy import Array
from evaluator.judge.expected import Expected

_MOST_FIGURES = 4096
_USED_LATELY = 2  # programs: this one and the one before
_KEPT_SHARE = 1 / 3  # of the memory
# What making a case and running a program on it takes besides, in units of its bytes: measured, an activation of
# 1.6 billion elements has three while float64 values are made, two for the buffers of runs and of a recorded reference.
_WORK = 5.5

Key = tuple[str, tuple, str, str, int]
"""Text of the reference, arrays and precision class of the task, case, seed."""


@dataclasses.dataclass
class _Kept:
    expected: Expected
    used: int  # by which program, counted


class KeptCases:
    """Expected values by key, and the figures of more of them."""

    def __init__(self, memory_bytes: int):
        """`memory_bytes`: what judging may take of the device, of which a third at most is kept."""
        self._memory_bytes = memory_bytes
        self._kept: collections.OrderedDict[Key, _Kept] = collections.OrderedDict()  # least recently used first
        self._figures: collections.OrderedDict[Key, Expected] = collections.OrderedDict()
        self._program = 0

    def next_program(self) -> None:
        """What comes is asked for by another program."""
        self._program += 1

    def get(self, key: Key) -> Expected | None:
        """The expected values, where they are kept."""
        held = self._kept.get(key)
        if held is None:
            return None
        self._kept.move_to_end(key)
        held.used = self._program
        return held.expected

    def figures(self, key: Key) -> Expected | None:
        """The same without arrays, where they were ever made."""
        return self._figures.get(key)

    def keep(self, key: Key, expected: Expected) -> None:
        """Keeps the figures, and the arrays where there is room for them."""
        self._figures[key] = dataclasses.replace(expected, inputs=(), exact=())
        if len(self._figures) > _MOST_FIGURES:
            self._figures.popitem(last=False)
        most_bytes = min(_KEPT_SHARE * self._memory_bytes, self._memory_bytes - _WORK * expected.nbytes)
        room = most_bytes - expected.nbytes
        for other, held in list(self._kept.items()):
            if self._nbytes <= room:
                break
            if held.used <= self._program - _USED_LATELY:
                del self._kept[other]
        if self._nbytes <= room:
            self._kept[key] = _Kept(expected, self._program)

    def holds(self, expected: Expected) -> bool:
        """Whether these very arrays are kept."""
        return any(held.expected is expected for held in self._kept.values())

    def clear(self) -> None:
        """Gives up all arrays."""
        self._kept.clear()

    @property
    def _nbytes(self) -> int:
        return sum(held.expected.nbytes for held in self._kept.values())


def with_arrays(
    figures: Expected, inputs: Sequence[Array], exact: Sequence[Array], digest: Callable[[Array], int]
) -> Expected:
    """Figures of a case with its arrays, made anew: a sum in another order may give them other last bits."""
    accuracies = tuple(
        dataclasses.replace(accuracy, digest=digest(array))
        for accuracy, array in zip(figures.accuracies, exact, strict=True)
    )
    return dataclasses.replace(figures, inputs=tuple(inputs), exact=tuple(exact), accuracies=accuracies)
