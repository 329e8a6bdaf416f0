"""Numbers that options of commands take. What is none of them is refused with what was seen and expected."""

import argparse
import math
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """A reader of integers of at least `least`, for argparse."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"seen {text!r}, expected a whole number of at least {least}")
        return value

    return read


def positive(text: str) -> float:
    """A reader of finite numbers above 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"seen {text!r}, expected a positive number")
    return value
