"""The namespace in PyTorch: the `torch` baselines, and what the other backends are compared with.

Arrays are tensors, on whichever device. Most functions are PyTorch's own; those that it spells in another way, or that
have other defaults there, are written out below.
"""

# ruff: noqa: F401
from collections.abc import Sequence

import torch
from torch import (
    abs,
    add,
    amax,
    amin,
    argmax,
    argmin,
    bmm,
    cat,
    chunk,
    clamp,
    cos,
    cumprod,
    cumsum,
    diag,
    div,
    einsum,
    erf,
    exp,
    expm1,
    flatten,
    log,
    log1p,
    masked_fill,
    matmul,
    mean,
    mul,
    narrow,
    neg,
    ones_like,
    outer,
    permute,
    pow,
    prod,
    reciprocal,
    reshape,
    roll,
    rsqrt,
    select,
    sigmoid,
    sign,
    sin,
    sqrt,
    square,
    squeeze,
    stack,
    std,
    sub,
    sum,
    tanh,
    transpose,
    tril,
    triu,
    unsqueeze,
    var,
    where,
    zeros_like,
)
from torch import amax as max
from torch import amin as min
from torch.nn.functional import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    celu,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_similarity,
    cross_entropy,
    elu,
    gelu,
    group_norm,
    hardsigmoid,
    hardswish,
    hardtanh,
    huber_loss,
    kl_div,
    l1_loss,
    layer_norm,
    leaky_relu,
    linear,
    log_softmax,
    logsigmoid,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    mish,
    mse_loss,
    normalize,
    pad,
    relu,
    relu6,
    rms_norm,
    scaled_dot_product_attention,
    selu,
    silu,
    smooth_l1_loss,
    softmax,
    softplus,
    softsign,
    tanhshrink,
    triplet_margin_loss,
)


def operand(x: torch.Tensor) -> torch.Tensor:
    return x


def dropout(x: torch.Tensor, p: float = 0.5, training: bool = True) -> torch.Tensor:
    """What is expected of it: the input, since outputs are compared with a program's."""
    return torch.nn.functional.dropout(x, p, training=False)


def minimum(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    """Of two tensors or a tensor and a number, which as a tensor would be copied to the device at every call."""
    return torch.minimum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, max=y)


def maximum(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    """As `minimum`."""
    return torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, min=y)


def flip(x: torch.Tensor, dims: int | tuple[int, ...]) -> torch.Tensor:
    return torch.flip(x, (dims,) if isinstance(dims, int) else dims)


def expand(x: torch.Tensor, size: tuple[int, ...]) -> torch.Tensor:
    return x.expand(*size)


def norm(
    x: torch.Tensor, p: float = 2.0, dim: int | tuple[int, ...] | None = None, keepdim: bool = False
) -> torch.Tensor:
    return torch.norm(x, p=p, dim=dim, keepdim=keepdim)


def logsumexp(x: torch.Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> torch.Tensor:
    return torch.logsumexp(x, dim, keepdim)


def instance_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, eps: float = 1e-5
) -> torch.Tensor:
    return torch.nn.functional.instance_norm(x, weight=weight, bias=bias, eps=eps)


def batch_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, eps: float = 1e-5
) -> torch.Tensor:
    """By the statistics of the batch; none are kept."""
    return torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


def unfold(x: torch.Tensor, dim: int, size: int, step: int) -> torch.Tensor:
    return x.unfold(dim, size, step)


def lstm(
    x: torch.Tensor,
    states: tuple[torch.Tensor, torch.Tensor],
    weights: Sequence[torch.Tensor],
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    layers = len(states[0]) // (2 if bidirectional else 1)
    return torch.lstm(x, states, list(weights), True, layers, 0.0, False, bidirectional, batch_first)


def gru(
    x: torch.Tensor,
    h0: torch.Tensor,
    weights: Sequence[torch.Tensor],
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    layers = len(h0) // (2 if bidirectional else 1)
    return torch.gru(x, h0, list(weights), True, layers, 0.0, False, bidirectional, batch_first)
