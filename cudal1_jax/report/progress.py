"""Progress on stderr: bars of the long steps, all of one form (what, how far, how fast, how long still), and lines."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")

TERMINAL_REFRESH_S = 0.1
LOG_REFRESH_S = 15.0  # into a file or a pipe every refresh is a line
TICK_S = 1.0


def bar(title: str, total: int | None, unit: str) -> tqdm:
    """A bar on stderr: title, share done, rate in `unit`s, time left. Close it, or use it as a context manager."""
    live = sys.stderr.isatty()
    return tqdm(
        total=total,
        desc=f"{title:<10}",
        unit=f" {unit}",
        mininterval=TERMINAL_REFRESH_S if live else LOG_REFRESH_S,
        leave=True,
        dynamic_ncols=live,
        file=sys.stderr,
    )


class Pace:
    """A bar for work that reports nothing until it is done: it moves at the pace of the last time, if there was one."""

    def __init__(self, title: str, unit: str):
        self._title = title
        self._unit = unit
        self._s_per_unit: float | None = None

    @contextlib.contextmanager
    def working(self, total: int) -> Iterator[None]:
        """Shows the bar while the body runs; `total` units are done when it ends."""
        began_s = time.monotonic()
        done = threading.Event()
        with bar(self._title, total, self._unit) as progress:
            ticker = threading.Thread(target=self._tick, args=(progress, total, began_s, done), daemon=True)
            ticker.start()
            try:
                yield
                self._s_per_unit = (time.monotonic() - began_s) / max(total, 1)
                finished = total
            except BaseException:
                finished = progress.n
                raise
            finally:
                done.set()
                ticker.join()
                progress.update(finished - progress.n)

    def _tick(self, progress: tqdm, total: int, began_s: float, done: threading.Event) -> None:
        while not done.wait(TICK_S):
            if self._s_per_unit:
                expected = int((time.monotonic() - began_s) / self._s_per_unit)
                progress.update(max(min(expected, total - 1) - progress.n, 0))
            if sys.stderr.isatty():
                progress.refresh()


def track(items: Iterable[T], title: str, total: int, unit: str) -> Iterator[T]:
    """The same items, with a bar that moves as they come."""
    with bar(title, total, unit) as progress:
        for item in items:
            yield item
            progress.update()


def say(line: str) -> None:
    """A line between bars; none is shown when it is called."""
    print(line, file=sys.stderr, flush=True)
