"""Calls that run out of memory: once more with room, and no third time."""

import weakref

import pytest

from evaluator.devices.cuda.room import with_room


class Block:
    """Stands for an array."""


def test_a_call_that_fits_makes_no_room():
    assert with_room(lambda: 3, lambda: pytest.fail("room was made")) == 3


def test_room_is_made_once_what_the_failed_call_took_is_free():
    held, calls, alive = [], [], []

    def call():
        block = Block()
        held.append(weakref.ref(block))
        calls.append(0)
        if len(calls) == 1:
            raise MemoryError("out of memory")
        return len(calls)

    assert with_room(call, lambda: alive.append(held[0]())) == 2
    assert alive == [None]


def test_what_does_not_fit_at_all_is_said():
    calls = []

    def call():
        calls.append(0)
        raise MemoryError("out of memory")

    with pytest.raises(MemoryError):
        with_room(call, lambda: None)
    assert len(calls) == 2
