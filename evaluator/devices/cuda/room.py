"""Calls that a device may have too little memory left for."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def with_room(call: Callable[[], Result], make_room: Callable[[], None]) -> Result:
    """What `call` gives. Where memory runs out (CuPy raises a MemoryError too) it is called again with more room."""
    with contextlib.suppress(MemoryError):
        return call()
    make_room()  # only here: while the error lived, so did what the call had taken
    return call()
