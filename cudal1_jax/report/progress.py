"""Progress bars of the long steps, all of one form: what, how far, how fast, how long still."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")

TERMINAL_REFRESH_S = 0.1
LOG_REFRESH_S = 15.0  # into a file or a pipe every refresh is a line


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


def track(items: Iterable[T], title: str, total: int, unit: str) -> Iterator[T]:
    """The same items, with a bar that moves as they come."""
    with bar(title, total, unit) as progress:
        for item in items:
            yield item
            progress.update()
