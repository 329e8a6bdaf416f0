"""Convolutions as one double-precision product per place in the kernel, for the oracle."""

import itertools
import math

import cupy as cp

from evaluator.nn.cupy_nn.exact.pooling import every

Lengths = tuple[int, ...]


def forward(
    x: cp.ndarray, weight: cp.ndarray, stride: Lengths, padding: Lengths, dilation: Lengths, groups: int
) -> cp.ndarray:
    """x [N, C, ...] with weight [O, C / groups, ...]."""
    padded = cp.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    window, lengths = weight.shape[2:], padded.shape[2:]
    sizes = tuple((n - d * (w - 1) - 1) // s + 1 for n, w, s, d in zip(lengths, window, stride, dilation, strict=True))
    parts = []
    for inputs, weights in zip(cp.split(padded, groups, axis=1), cp.split(weight, groups, axis=0), strict=True):
        out = cp.zeros((x.shape[0], weights.shape[0], math.prod(sizes)), x.dtype)
        for place in itertools.product(*map(range, window)):
            seen = inputs[(slice(None), slice(None), *every(place, window, stride, dilation, lengths))]
            out += cp.matmul(weights[(slice(None), slice(None), *place)], seen.reshape(*seen.shape[:2], -1))
        parts.append(out.reshape(*out.shape[:2], *sizes))
    return cp.concatenate(parts, axis=1)


def transposed(
    x: cp.ndarray,
    weight: cp.ndarray,
    stride: Lengths,
    padding: Lengths,
    output_padding: Lengths,
    dilation: Lengths,
    groups: int,
) -> cp.ndarray:
    """x [N, C, ...] with weight [C, O / groups, ...]: every input adds a scaled kernel to the output."""
    window, sizes = weight.shape[2:], x.shape[2:]
    full = tuple(
        (n - 1) * s + d * (w - 1) + 1 + extra
        for n, s, d, w, extra in zip(sizes, stride, dilation, window, output_padding, strict=True)
    )
    parts = []
    for inputs, weights in zip(cp.split(x, groups, axis=1), cp.split(weight, groups, axis=0), strict=True):
        out = cp.zeros((x.shape[0], weight.shape[1], *full), x.dtype)
        flat = inputs.reshape(*inputs.shape[:2], -1)
        for place in itertools.product(*map(range, window)):
            product = cp.matmul(weights[(slice(None), slice(None), *place)].T, flat)
            spots = tuple(
                slice(at * d, at * d + s * (n - 1) + 1, s)
                for at, d, s, n in zip(place, dilation, stride, sizes, strict=True)
            )
            out[(slice(None), slice(None), *spots)] += product.reshape(*product.shape[:2], *sizes)
        parts.append(out)
    kept = tuple(slice(p, n - p) for p, n in zip(padding, full, strict=True))
    return cp.ascontiguousarray(cp.concatenate(parts, axis=1)[(slice(None), slice(None), *kept)])
