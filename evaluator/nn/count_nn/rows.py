"""Row-wise functions (softmax, norms) and losses, by the operations of their formulas."""

from evaluator.nn.count_nn.array import Array, Dim, elementwise, fold
from evaluator.nn.count_nn.reductions import mean, norm, sum


def softmax(x: Array, dim: int) -> Array:
    """Maximum, difference, exp, sum, quotient."""
    fold(x, dim, keepdim=True, per_element=4)
    return elementwise(1, x)


def log_softmax(x: Array, dim: int) -> Array:
    """Maximum, difference, exp, sum, difference; a logarithm for each row."""
    fold(x, dim, keepdim=True, per_element=4, per_result=1)
    return elementwise(1, x)


def normalize(x: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    return x / elementwise(1, norm(x, p, dim, keepdim=True))


def layer_norm(
    x: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    return _affine(_standardised(x, _trailing(normalized_shape)), weight, bias)


def rms_norm(
    x: Array, normalized_shape: tuple[int, ...], weight: Array | None = None, eps: float | None = None
) -> Array:
    """Square, sum, product; for each row a quotient, epsilon and a root."""
    fold(x, _trailing(normalized_shape), keepdim=True, per_element=2, per_result=3)
    return _affine(elementwise(1, x), weight, None)


def group_norm(
    x: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    groups = x.reshape(x.shape[0], num_groups, -1)
    return _affine(_standardised(groups, 2).moved(x.shape), _channels(x, weight), _channels(x, bias))


def instance_norm(x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    standard = _standardised(x, tuple(range(2, x.ndim)))
    return _affine(standard, _channels(x, weight), _channels(x, bias))


def batch_norm(x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    standard = _standardised(x, (0, *range(2, x.ndim)))
    return _affine(standard, _channels(x, weight), _channels(x, bias))


def mse_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    return _reduced(elementwise(2, input, target), reduction)


l1_loss = mse_loss


def smooth_l1_loss(input: Array, target: Array, reduction: str = "mean", beta: float = 1.0) -> Array:
    """Difference, magnitude, comparison, square, half, quotient, difference, choice."""
    return _reduced(elementwise(8, input, target), reduction)


def huber_loss(input: Array, target: Array, reduction: str = "mean", delta: float = 1.0) -> Array:
    return elementwise(1, smooth_l1_loss(input, target, reduction))


def kl_div(input: Array, target: Array, reduction: str = "mean", log_target: bool = False) -> Array:
    """exp(t) (t - x), or t log t - t x."""
    pointwise = elementwise(3 if log_target else 4, input, target)
    return _reduced(pointwise, "mean" if reduction == "batchmean" else reduction)


def cross_entropy(input: Array, target: Array, reduction: str = "mean") -> Array:
    log_softmax(input, dim=1)
    return _reduced(elementwise(1, input.moved(target.shape)), reduction)


def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    lengths = [elementwise(1, norm(x, dim=dim)) for x in (x1, x2)]
    return sum(x1 * x2, dim) / (lengths[0] * lengths[1])


def triplet_margin_loss(
    anchor: Array, positive: Array, negative: Array, margin: float = 1.0, eps: float = 1e-6
) -> Array:
    """Mean of max(|a - p + eps| - |a - n + eps| + margin, 0)."""
    near, far = (norm(elementwise(2, anchor, other), dim=-1) for other in (positive, negative))
    return mean(elementwise(3, near, far))


def _reduced(pointwise: Array, reduction: str) -> Array:
    if reduction == "none":
        return pointwise
    return mean(pointwise) if reduction == "mean" else sum(pointwise)


def _standardised(x: Array, dim: Dim) -> Array:
    """Sum, difference, square, sum, product; for each row two quotients, epsilon and a root."""
    fold(x, dim, keepdim=True, per_element=4, per_result=4)
    return elementwise(1, x)


def _trailing(normalized_shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(normalized_shape), 0))


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Array:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _channels(x: Array, values: Array | None) -> Array | None:
    return None if values is None else values.moved((1, values.size, *(1,) * (x.ndim - 2)))
