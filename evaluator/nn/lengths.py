"""Lengths per dimension, as strides and paddings are given. Imports nothing that a confined process would lack."""

from collections.abc import Sequence


def each(lengths: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """One number for every dimension, as PyTorch's arguments may be given."""
    return (lengths,) * ndim if isinstance(lengths, int) else tuple(lengths)


def windows(length: int, outputs: int) -> list[tuple[int, int]]:
    """First element and length of the window that adaptive pooling folds into each of `outputs` elements.

    Windows cover `length` elements in order, and overlap where it is no multiple of `outputs`.
    """
    if outputs < 1 or length < 1:
        raise ValueError(f"adaptive pooling: {length} elements cannot become {outputs}; both must be 1 or more")
    starts = [at * length // outputs for at in range(outputs)]
    ends = [-(-(at + 1) * length // outputs) for at in range(outputs)]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def pooled(length: int, window: int, step: int, pad: int, apart: int, ceil_mode: bool) -> int:
    """Number of windows of a pooling; with `ceil_mode` the last may reach past the end but starts before it."""
    room = length + 2 * pad - apart * (window - 1) - 1
    count = room // step + 1
    return count + 1 if ceil_mode and room % step and count * step < length + pad else count


def pad_widths(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """Elements added before and after each of `ndim` dimensions; PyTorch lists them from the last dimension back."""
    if len(pad) % 2 or len(pad) > 2 * ndim or min(pad, default=0) < 0:
        raise ValueError(f"pad: {tuple(pad)} for {ndim} dimensions; give two numbers, 0 or more, for each of the last")
    pairs = [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]
