"""Lengths per dimension, as strides and paddings are given. Imports nothing that a confined process would lack."""

from collections.abc import Sequence


def each(lengths: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """One number for every dimension, as PyTorch's arguments may be given."""
    return (lengths,) * ndim if isinstance(lengths, int) else tuple(lengths)
