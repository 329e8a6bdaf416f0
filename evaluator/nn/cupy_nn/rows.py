"""Softmax and norms on CuPy arrays, with PyTorch's names, arguments and values.

In float32 each is two kernels: a fold for the statistics, then one element-wise pass that uses them.
"""

import cupy as cp

from evaluator.nn.cupy_nn import folds, fused
from evaluator.nn.cupy_nn.exact import rows as exact
from evaluator.nn.cupy_nn.fold import Fold, fold
from evaluator.nn.cupy_nn.reductions import dims_of, kept, norm


def softmax(x: cp.ndarray, dim: int) -> cp.ndarray:
    if x.dtype != cp.float32:
        return exact.softmax(x, dim)
    return fused.apply("expf(a - b) / c", x, *_pair(folds.EXPONENTIALS, x, dims_of(x, dim)))


def log_softmax(x: cp.ndarray, dim: int) -> cp.ndarray:
    if x.dtype != cp.float32:
        return exact.log_softmax(x, dim)
    return fused.apply("a - b - c", x, *_pair(folds.LOG_EXPONENTIALS, x, dims_of(x, dim)))


def normalize(x: cp.ndarray, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> cp.ndarray:
    """x over its p-norm along `dim`, the norm held at `eps` or above."""
    if x.dtype != cp.float32:
        return exact.normalize(x, p, dim, eps)
    return fused.apply("a / fmaxf(b, c)", x, norm(x, p, dim, keepdim=True), eps)


def layer_norm(
    x: cp.ndarray,
    normalized_shape: tuple[int, ...],
    weight: cp.ndarray | None = None,
    bias: cp.ndarray | None = None,
    eps: float = 1e-5,
) -> cp.ndarray:
    """Zero mean and unit (biased) variance over the trailing `normalized_shape`, then weight and bias."""
    axes = _trailing(x, normalized_shape)
    if x.dtype != cp.float32:
        return exact.standardise(x, axes, eps, weight, bias)
    return _standardise(x, axes, eps, weight, bias)


def rms_norm(
    x: cp.ndarray, normalized_shape: tuple[int, ...], weight: cp.ndarray | None = None, eps: float | None = None
) -> cp.ndarray:
    """x over the root of its mean square over `normalized_shape`; `eps` defaults to the dtype's epsilon."""
    axes = _trailing(x, normalized_shape)
    epsilon = float(cp.finfo(x.dtype).eps) if eps is None else eps
    if x.dtype != cp.float32:
        return exact.rms_norm(x, axes, epsilon, weight)
    mean_square = fold(folds.MEAN_SQUARE, x, axes).reshape(kept(x.shape, axes))
    if weight is None:
        return fused.apply("a * rsqrtf(b + c)", x, mean_square, epsilon)
    return fused.apply("a * rsqrtf(b + c) * d", x, mean_square, epsilon, weight)


def group_norm(
    x: cp.ndarray,
    num_groups: int,
    weight: cp.ndarray | None = None,
    bias: cp.ndarray | None = None,
    eps: float = 1e-5,
) -> cp.ndarray:
    """Standardised over each of `num_groups` groups of channels (dimension 1) and what follows; affine per channel."""
    batch, channels = x.shape[:2]
    if channels % num_groups:
        raise ValueError(f"group_norm: {channels} channels cannot be split into {num_groups} groups")
    groups = x.reshape(batch, num_groups, channels // num_groups, -1)
    per_group = (num_groups, channels // num_groups, 1)
    weights, biases = (None if values is None else values.reshape(per_group) for values in (weight, bias))
    if x.dtype != cp.float32:
        return exact.standardise(groups, (2, 3), eps, weights, biases).reshape(x.shape)
    return _standardise(groups, (2, 3), eps, weights, biases).reshape(x.shape)


def instance_norm(
    x: cp.ndarray, weight: cp.ndarray | None = None, bias: cp.ndarray | None = None, eps: float = 1e-5
) -> cp.ndarray:
    """Standardised over the dimensions after the channel, by the instance's own statistics."""
    return _per_channel_norm(x, tuple(range(2, x.ndim)), weight, bias, eps)


def batch_norm(
    x: cp.ndarray, weight: cp.ndarray | None = None, bias: cp.ndarray | None = None, eps: float = 1e-5
) -> cp.ndarray:
    """Standardised per channel by the batch's own statistics: training mode, which the benchmark never leaves."""
    return _per_channel_norm(x, (0, *range(2, x.ndim)), weight, bias, eps)


def _per_channel_norm(
    x: cp.ndarray, axes: tuple[int, ...], weight: cp.ndarray | None, bias: cp.ndarray | None, eps: float
) -> cp.ndarray:
    per_channel = (-1, *(1,) * (x.ndim - 2))
    weights, biases = (None if values is None else values.reshape(per_channel) for values in (weight, bias))
    if x.dtype != cp.float32:
        return exact.standardise(x, axes, eps, weights, biases)
    return _standardise(x, axes, eps, weights, biases)


def _standardise(
    x: cp.ndarray,
    axes: tuple[int, ...],
    eps: float,
    weight: cp.ndarray | None,
    bias: cp.ndarray | None,
) -> cp.ndarray:
    """`weight` and `bias` broadcast against x."""
    mean, scale = _pair(folds.STANDARD, x, axes, eps)
    if weight is None and bias is None:
        return fused.apply("(a - b) * c", x, mean, scale)
    if bias is None:
        return fused.apply("(a - b) * c * d", x, mean, scale, weight)
    return fused.apply("(a - b) * c * d + e", x, mean, scale, 1.0 if weight is None else weight, bias)


def _pair(kind: Fold, x: cp.ndarray, axes: tuple[int, ...], parameter: float = 0.0) -> tuple[cp.ndarray, cp.ndarray]:
    """The two statistics of a fold over `axes`, each shaped to broadcast against x."""
    both = fold(kind, x, axes, parameter).reshape(*kept(x.shape, axes), 2)
    return both[..., 0], both[..., 1]


def _trailing(x: cp.ndarray, normalized_shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    if tuple(x.shape[axis] for axis in axes if axis >= 0) != tuple(normalized_shape):
        raise ValueError(f"normalized_shape {tuple(normalized_shape)} is not the end of the input's shape {x.shape}")
    return axes
