"""The namespace in CuPy: the `eager` baseline of the `cuda` device in float32, its oracle in float64.

Names, arguments and values are those of `torch` and `torch.nn.functional`. Arrays are `cupy.ndarray`, so operators and
slices work in a reference too. Functions follow the dtype of their arguments: float32 runs kernels that reach PyTorch's
speed, float64 runs the plain forms in `exact`. Everything runs on CuPy's current stream, synchronises nothing, and can
be captured in a CUDA graph after a first call has compiled its kernels.
"""

# ruff: noqa: F401
from evaluator.nn.cupy_nn.array import operand
from evaluator.nn.cupy_nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from evaluator.nn.cupy_nn.elementwise import (
    abs,
    add,
    celu,
    clamp,
    cos,
    div,
    dropout,
    elu,
    erf,
    exp,
    expm1,
    gelu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log,
    log1p,
    logsigmoid,
    maximum,
    minimum,
    mish,
    mul,
    neg,
    pow,
    reciprocal,
    relu,
    relu6,
    rsqrt,
    selu,
    sigmoid,
    sign,
    silu,
    sin,
    softplus,
    softsign,
    sqrt,
    square,
    sub,
    tanh,
    tanhshrink,
    where,
)
from evaluator.nn.cupy_nn.losses import (
    cosine_similarity,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
    triplet_margin_loss,
)
from evaluator.nn.cupy_nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from evaluator.nn.cupy_nn.products import (
    bmm,
    einsum,
    linear,
    matmul,
    outer,
    scaled_dot_product_attention,
)
from evaluator.nn.cupy_nn.recurrent import gru, lstm
from evaluator.nn.cupy_nn.reductions import (
    amax,
    amin,
    argmax,
    argmin,
    logsumexp,
    max,
    mean,
    min,
    norm,
    prod,
    std,
    sum,
    var,
)
from evaluator.nn.cupy_nn.rows import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    log_softmax,
    normalize,
    rms_norm,
    softmax,
)
from evaluator.nn.cupy_nn.scans import cumprod, cumsum
from evaluator.nn.cupy_nn.shapes import (
    cat,
    chunk,
    diag,
    expand,
    flatten,
    flip,
    masked_fill,
    narrow,
    ones_like,
    pad,
    permute,
    reshape,
    roll,
    select,
    squeeze,
    stack,
    transpose,
    tril,
    triu,
    unfold,
    unsqueeze,
    zeros_like,
)
