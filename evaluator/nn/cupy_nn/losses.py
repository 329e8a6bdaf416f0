"""Losses on CuPy arrays, with PyTorch's names, arguments and values: one pointwise kernel, then a reduction."""

import cupy as cp

from evaluator.nn.cupy_nn import elementwise, fused, reductions
from evaluator.nn.cupy_nn.exact import losses as exact
from evaluator.nn.cupy_nn.launch import launch
from evaluator.nn.cupy_nn.rows import log_softmax


def mse_loss(input: cp.ndarray, target: cp.ndarray, reduction: str = "mean") -> cp.ndarray:
    if input.dtype != cp.float32:
        return _reduce(exact.mse_loss(input, target), reduction)
    return _reduce(fused.apply("(a - b) * (a - b)", input, target), reduction)


def l1_loss(input: cp.ndarray, target: cp.ndarray, reduction: str = "mean") -> cp.ndarray:
    if input.dtype != cp.float32:
        return _reduce(exact.l1_loss(input, target), reduction)
    return _reduce(fused.apply("fabsf(a - b)", input, target), reduction)


def smooth_l1_loss(input: cp.ndarray, target: cp.ndarray, reduction: str = "mean", beta: float = 1.0) -> cp.ndarray:
    """Half the square over `beta` where the difference is below `beta`, the difference less beta / 2 above."""
    if input.dtype != cp.float32:
        return _reduce(exact.smooth_l1_loss(input, target, beta), reduction)
    distance = "fabsf(a - b)"
    expression = f"{distance} < c ? 0.5f * {distance} * {distance} / c : {distance} - 0.5f * c"
    return _reduce(fused.apply(expression, input, target, beta), reduction)


def huber_loss(input: cp.ndarray, target: cp.ndarray, reduction: str = "mean", delta: float = 1.0) -> cp.ndarray:
    """`delta` times the smooth L1 loss with beta = delta."""
    return smooth_l1_loss(input, target, reduction, beta=delta) * delta


def kl_div(input: cp.ndarray, target: cp.ndarray, reduction: str = "mean", log_target: bool = False) -> cp.ndarray:
    """target (log target - input), `input` being log-probabilities; "batchmean" divides the sum by the batch."""
    if input.dtype != cp.float32:
        pointwise = exact.kl_div(input, target, log_target)
    elif log_target:
        pointwise = fused.apply("expf(b) * (b - a)", input, target)
    else:
        # Two kernels more, as in PyTorch: x log y with 0 log 0 = 0, a product, their difference.
        pointwise = fused.apply("b == 0.0f ? 0.0f : b * logf(b)", input, target) - target * input
    if reduction == "batchmean":
        return reductions.sum(pointwise) / input.shape[0]
    return _reduce(pointwise, reduction)


def cross_entropy(input: cp.ndarray, target: cp.ndarray, reduction: str = "mean") -> cp.ndarray:
    """Negative log-probability of class `target` [B] under logits `input` [B, C]."""
    if input.dtype != cp.float32:
        return _reduce(exact.cross_entropy(input, target), reduction)
    logprobs = log_softmax(input, 1)
    batch, classes = logprobs.shape
    picked = type(input)((batch,), cp.float32)
    places = cp.ascontiguousarray(target, dtype=cp.int64)
    launch(_PICK, "pick", (-(-batch // 256),), (256,), (logprobs, places, picked, batch, classes))
    return _reduce(picked, reduction)


_PICK = r"""
extern "C" __global__ void pick(const float* logprobs, const long long* target, float* out, long long batch,
                                long long classes) {
  long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row < batch) out[row] = -logprobs[row * classes + target[row]];
}
"""


def cosine_similarity(x1: cp.ndarray, x2: cp.ndarray, dim: int = 1, eps: float = 1e-8) -> cp.ndarray:
    """x1 . x2 over the product of their lengths, each held at `eps` or above."""
    length1, length2 = (elementwise.clamp(reductions.norm(x, 2.0, dim, keepdim=True), min=eps) for x in (x1, x2))
    return reductions.sum((x1 / length1) * (x2 / length2), dim)


def triplet_margin_loss(
    anchor: cp.ndarray, positive: cp.ndarray, negative: cp.ndarray, margin: float = 1.0, eps: float = 1e-6
) -> cp.ndarray:
    """Mean of max(|a - p| - |a - n| + margin, 0), distances over the last dimension of differences shifted by `eps`."""
    near = reductions.norm(anchor - positive + eps, 2.0, -1)
    far = reductions.norm(anchor - negative + eps, 2.0, -1)
    return reductions.mean(elementwise.clamp(near - far + margin, min=0.0))


def _reduce(pointwise: cp.ndarray, reduction: str) -> cp.ndarray:
    if reduction == "mean":
        return reductions.mean(pointwise)
    if reduction == "sum":
        return reductions.sum(pointwise)
    if reduction == "none":
        return pointwise
    raise ValueError(f'reduction is {reduction!r}; it must be "mean", "sum" or "none"')
