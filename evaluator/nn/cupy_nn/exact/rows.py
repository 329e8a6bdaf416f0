"""Softmax and norms by their definitions, for the oracle."""

import cupy as cp


def softmax(x: cp.ndarray, dim: int) -> cp.ndarray:
    powers = cp.exp(x - cp.max(x, axis=dim, keepdims=True))
    return powers / cp.sum(powers, axis=dim, keepdims=True)


def log_softmax(x: cp.ndarray, dim: int) -> cp.ndarray:
    shifted = x - cp.max(x, axis=dim, keepdims=True)
    return shifted - cp.log(cp.sum(cp.exp(shifted), axis=dim, keepdims=True))


def normalize(x: cp.ndarray, p: float, dim: int, eps: float) -> cp.ndarray:
    length = cp.sum(cp.absolute(x) ** p, axis=dim, keepdims=True) ** (1 / p)
    return x / cp.maximum(length, eps)


def standardise(
    x: cp.ndarray, axes: tuple[int, ...], eps: float, weight: cp.ndarray | None, bias: cp.ndarray | None
) -> cp.ndarray:
    """Two passes: the mean, then the mean square of what is left."""
    centred = x - cp.mean(x, axis=axes, keepdims=True)
    standard = centred / cp.sqrt(cp.mean(centred * centred, axis=axes, keepdims=True) + eps)
    scaled = standard if weight is None else standard * weight
    return scaled if bias is None else scaled + bias


def rms_norm(x: cp.ndarray, axes: tuple[int, ...], eps: float, weight: cp.ndarray | None) -> cp.ndarray:
    scaled = x / cp.sqrt(cp.mean(x * x, axis=axes, keepdims=True) + eps)
    return scaled if weight is None else scaled * weight
