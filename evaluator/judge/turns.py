"""Whose turn it is at what only a few programs may use at once, such as a GPU: programs of one kind go in a row."""

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol, TypeVar

MOST_OVERTAKEN = 8

Pause = Callable[[bool], None]
"""Told True when a wait for others begins, False when it is over. Not called where there is nothing to wait for."""


class Queued(Protocol):
    """Something that waits; `overtaken` is how many that came later went before it."""

    overtaken: int


Q = TypeVar("Q", bound=Queued)


def next_of(waiting: Sequence[Q], rank: Callable[[Q], int]) -> Q:
    """The first of the lowest rank among `waiting`, which are in the order in which they came.

    The one that came first is overtaken `MOST_OVERTAKEN` times at most, so that none waits for ever. Counts that.
    """
    first = waiting[0]
    chosen = first if first.overtaken >= MOST_OVERTAKEN else min(waiting, key=rank)
    for each in itertools.takewhile(lambda each: each is not chosen, waiting):
        each.overtaken += 1
    return chosen


@dataclasses.dataclass(eq=False)
class _Waiting:
    kind: Hashable
    first: bool
    alone: bool
    overtaken: int = 0
    let_in: threading.Event = dataclasses.field(default_factory=threading.Event)


class Turns:
    """Lets `places` threads in at once. Who goes next: short work, else the kind let in last, else who came first."""

    def __init__(self, places: int = 1):
        self._free = places
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._inside: list[_Waiting] = []
        self._last: Hashable = None

    @contextlib.contextmanager
    def taken(
        self, kind: Hashable, pause: Pause | None = None, *, first: bool = False, alone: bool = False
    ) -> Iterator[None]:
        """Waits for a place and keeps it. `first`: before all that do not say so; for what is short.

        `alone`: not while another one of this kind has a place, since it may be done with when that one is.
        """
        me = _Waiting(kind, first, alone)
        try:
            with self._lock:
                self._waiting.append(me)
                self._let_in()
            if not me.let_in.is_set():
                _wait(me.let_in, pause)
            yield
        finally:
            with self._lock:
                if me in self._inside:
                    self._inside.remove(me)
                    self._free += 1
                else:  # interrupted while it waited
                    self._waiting.remove(me)
                self._let_in()

    def _let_in(self) -> None:
        while self._free:
            inside = {each.kind for each in self._inside if each.alone}
            able = [each for each in self._waiting if not (each.alone and each.kind in inside)]
            if not able:
                return
            chosen = next_of(able, self._rank)
            self._waiting.remove(chosen)
            self._inside.append(chosen)
            self._free -= 1
            if not chosen.first:
                self._last = chosen.kind
            chosen.let_in.set()

    def _rank(self, each: _Waiting) -> int:
        return 0 if each.first else 1 if each.kind == self._last else 2


def _wait(event: threading.Event, pause: Pause | None) -> None:
    if pause is None:
        event.wait()
        return
    pause(True)
    event.wait()
    pause(False)
