"""Pooling by whole shifted arrays, one per place in the window, for the oracle."""

import itertools
import math

import cupy as cp


def pool(
    x: cp.ndarray,
    largest: bool,
    window: tuple[int, ...],
    step: tuple[int, ...],
    pad: tuple[int, ...],
    apart: tuple[int, ...],
    outs: tuple[int, ...],
) -> cp.ndarray:
    """Maximum, or average with the padding counted, over `outs` windows along the last dimensions."""
    geometry = zip(outs, x.shape[-len(pad) :], window, step, pad, apart, strict=True)
    after = [max(p, (m - 1) * s + d * (w - 1) + 1 - n - p) for m, n, w, s, p, d in geometry]
    around = [(0, 0)] * (x.ndim - len(pad)) + list(zip(pad, after, strict=True))
    padded = cp.pad(x, around, mode="constant", constant_values=-cp.inf if largest else 0)
    lengths = padded.shape[-len(pad) :]
    first, *places = itertools.product(*map(range, window))
    folded = padded[(..., *every(first, window, step, apart, lengths))].copy()
    for place in places:
        shifted = padded[(..., *every(place, window, step, apart, lengths))]
        folded = cp.maximum(folded, shifted) if largest else folded + shifted
    return folded if largest else folded / math.prod(window)


def adaptive_avg_pool(x: cp.ndarray, cuts: list[list[tuple[int, int]]]) -> cp.ndarray:
    """Means over windows of any length, window by window; `cuts` holds starts and lengths, dimension by dimension."""
    out = cp.empty((*x.shape[: -len(cuts)], *map(len, cuts)), x.dtype)
    axes = tuple(range(-len(cuts), 0))
    for place in itertools.product(*(range(len(along)) for along in cuts)):
        picked = [along[at] for along, at in zip(cuts, place, strict=True)]
        part = x[(..., *(slice(start, start + n) for start, n in picked))]
        out[(..., *place)] = part.mean(axis=axes)
    return out


def every(
    place: tuple[int, ...],
    window: tuple[int, ...],
    step: tuple[int, ...],
    apart: tuple[int, ...],
    lengths: tuple[int, ...],
) -> tuple[slice, ...]:
    """Slices that pick, of a padded array, the element at `place` of every window."""
    slices = []
    for at, w, s, d, n in zip(place, window, step, apart, lengths, strict=True):
        count = (n - d * (w - 1) - 1) // s + 1
        slices.append(slice(at * d, at * d + s * (count - 1) + 1, s))
    return tuple(slices)
