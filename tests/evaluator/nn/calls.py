"""Calls of every function of the namespace: name, arguments, keywords. Tests compare what the backends make of them."""

import numpy as np


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


X, Y, Z = normal(5, 7), normal(5, 7, seed=1), normal(5, 7, seed=2)
POSITIVE = np.abs(X) + np.float32(0.1)
IMAGE = normal(2, 6, 3, 5)
SERIES, PICTURE, VOLUME = normal(2, 4, 19), normal(2, 4, 9, 8), normal(2, 2, 6, 7, 5)
CHANNELS = normal(6), normal(6, seed=1)
SPREAD = np.concatenate([X.ravel(), 20 * Y.ravel(), np.float32([0, -0.0, 3, -3, 25, -25, 88, -88])])
MASK = Y > 0
PROBABILITIES = np.exp(X) / np.exp(X).sum(1, keepdims=True)

SEQUENCE = normal(4, 3, 5)


def cells(gates, inputs):
    """Weights of a recurrent network with a state of 6: of each layer and direction, from so many inputs."""
    shapes = ((gates * 6, 0), (gates * 6, 6), (gates * 6,), (gates * 6,))
    return tuple(
        normal(*(n or given for n in shape), seed=2 + 4 * at + part) / 2
        for at, given in enumerate(inputs)
        for part, shape in enumerate(shapes)
    )


# fmt: off
UNARY = [
    "neg", "abs", "sign", "square", "exp", "expm1", "sin", "cos", "erf",
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "sigmoid", "logsigmoid", "tanh",
    "silu", "gelu", "softplus", "mish", "softsign", "tanhshrink", "hardtanh", "hardsigmoid", "hardswish",
]
# fmt: on
REDUCTIONS = ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "norm"]
CALLS = [
    *[(name, (SPREAD,), {}) for name in UNARY],
    *[(name, (POSITIVE,), {}) for name in ["reciprocal", "log", "log1p", "sqrt", "rsqrt"]],
    *[(name, (X, POSITIVE), {}) for name in ["add", "sub", "mul", "div", "minimum", "maximum"]],
    ("pow", (POSITIVE, 2.5), {}),
    ("pow", (X, 3), {}),
    ("where", (MASK, X, Y), {}),
    ("clamp", (X,), {"min": -0.5, "max": 0.25}),
    ("clamp", (X,), {"min": 0.1}),
    ("leaky_relu", (X,), {"negative_slope": 0.2}),
    ("elu", (X,), {"alpha": 0.5}),
    ("celu", (X,), {"alpha": 2.0}),
    ("gelu", (SPREAD,), {"approximate": "tanh"}),
    ("softplus", (SPREAD,), {"beta": 2.0, "threshold": 10.0}),
    ("hardtanh", (X,), {"min_val": -0.3, "max_val": 0.6}),
    *[(name, (X,), {}) for name in [*REDUCTIONS, "max", "min", "var", "std"]],
    *[
        (name, (X,), {"dim": 1, "keepdim": True})
        for name in ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "norm"]
    ],
    *[(name, (IMAGE,), {"dim": (1, 3)}) for name in ["sum", "mean", "amax", "amin", "var", "std", "norm", "logsumexp"]],
    ("max", (X,), {"dim": 0}),
    ("min", (X,), {"dim": -1, "keepdim": True}),
    ("var", (X,), {"dim": 1, "correction": 0}),
    ("std", (X,), {"dim": 1, "correction": 0}),
    *[("norm", (X,), {"p": p, "dim": 1}) for p in (1, 2, 3, float("inf"))],
    ("logsumexp", (50 * X,), {"dim": 1, "keepdim": True}),
    ("cumsum", (X,), {"dim": 1}),
    ("cumprod", (X,), {"dim": 0}),
    ("softmax", (50 * X,), {"dim": 1}),
    ("log_softmax", (50 * X,), {"dim": 0}),
    ("normalize", (X,), {}),
    ("normalize", (X,), {"p": 1, "dim": 0}),
    ("layer_norm", (X, (7,)), {}),
    ("layer_norm", (X, (5, 7), Y, Z), {"eps": 0.1}),
    ("rms_norm", (X, (7,)), {}),
    ("rms_norm", (X, (7,), Y[0]), {"eps": 0.1}),
    ("group_norm", (IMAGE, 3), {}),
    ("group_norm", (IMAGE, 2, *CHANNELS), {"eps": 0.1}),
    ("instance_norm", (IMAGE, *CHANNELS), {}),
    ("batch_norm", (IMAGE, *CHANNELS), {}),
    ("batch_norm", (X,), {}),
    ("matmul", (X, Y.T.copy()), {}),
    ("matmul", (normal(3, 1, 4, 5), normal(2, 5, 6)), {}),
    ("matmul", (normal(3, 4, 5), normal(5, 6)), {}),
    ("matmul", (normal(3, 5, 4).swapaxes(1, 2), normal(3, 6, 5).swapaxes(1, 2)), {}),
    ("matmul", (normal(2, 3, 4, 5), normal(2, 3, 5, 6)), {}),
    ("matmul", (normal(4, 10)[:, ::2], normal(5, 6)), {}),
    ("matmul", (normal(4, 5), normal(5)), {}),
    ("matmul", (normal(5), normal(5, 6)), {}),
    ("matmul", (normal(5), normal(5)), {}),
    ("bmm", (normal(3, 4, 5), normal(3, 5, 6)), {}),
    ("linear", (X, Y), {}),
    ("linear", (X, Y, normal(5)), {}),
    ("einsum", ("bijl,lk->bijk", normal(2, 3, 4, 5), normal(5, 6)), {}),
    ("einsum", ("bqhd, bkhd -> bhqk", normal(2, 3, 4, 5), normal(2, 6, 4, 5)), {}),
    ("einsum", ("ijk,kji->", normal(2, 3, 4), normal(4, 3, 2)), {}),
    ("einsum", ("lk,bijl->kjib", normal(5, 6), normal(2, 3, 4, 5)), {}),
    ("einsum", ("i,j->ji", X[0], Y[0]), {}),
    ("einsum", ("ij,ij->i", X, Y), {}),
    ("einsum", ("ijk,jl->il", normal(2, 3, 4), normal(3, 5)), {}),
    ("einsum", ("ii->i", normal(4, 4)), {}),
    ("outer", (X[0], Y[:, 0].copy()), {}),
    ("scaled_dot_product_attention", (normal(2, 3, 4, 5), normal(2, 3, 4, 5, seed=1), normal(2, 3, 4, 5, seed=2)), {}),
    ("scaled_dot_product_attention", (normal(2, 4, 5), normal(2, 4, 5, seed=1), X[:4, :5].copy()), {"is_causal": True}),
    ("max_pool1d", (SERIES, 4), {}),
    ("max_pool1d", (SERIES, 4), {"stride": 1, "padding": 2, "dilation": 3}),
    ("max_pool2d", (IMAGE, 2), {}),
    ("max_pool2d", (PICTURE, (3, 2)), {"stride": (2, 1), "padding": 1, "dilation": (1, 2)}),
    ("max_pool3d", (VOLUME, 3), {"stride": 2, "padding": 1}),
    ("avg_pool1d", (SERIES, 4), {"stride": 1, "padding": 2}),
    ("avg_pool2d", (PICTURE, 3), {}),
    ("avg_pool2d", (PICTURE, (3, 2)), {"stride": (2, 1), "padding": (1, 0)}),
    ("avg_pool3d", (VOLUME, 3), {"stride": 2, "padding": 1}),
    ("max_pool1d", (SERIES, 3), {"stride": 2, "dilation": 2, "ceil_mode": True}),
    ("max_pool2d", (PICTURE, 3), {"stride": 2, "ceil_mode": True}),  # of 9 x 8: 4 x 4, not 4 x 3
    ("max_pool2d", (PICTURE, 2), {"stride": 3, "padding": 1, "ceil_mode": True}),  # no window of padding alone
    ("max_pool3d", (VOLUME, 3), {"stride": 2, "ceil_mode": True}),
    ("adaptive_avg_pool1d", (SERIES, 5), {}),
    ("adaptive_avg_pool1d", (SERIES, 1), {}),
    *[("adaptive_avg_pool2d", (PICTURE, size), {}) for size in [1, (3, 4), (4, 3), (12, 8)]],
    ("adaptive_avg_pool3d", (VOLUME, (2, 3, 1)), {}),
    ("conv1d", (SERIES, normal(6, 4, 3), normal(6)), {"stride": 2, "padding": 1}),
    ("conv1d", (SERIES, normal(6, 2, 3)), {"dilation": 2, "groups": 2}),
    ("conv2d", (PICTURE, normal(5, 4, 3, 2)), {}),
    ("conv2d", (PICTURE, normal(8, 1, 3, 3), normal(8)), {"stride": (2, 1), "padding": (0, 2), "groups": 4}),
    ("conv3d", (VOLUME, normal(4, 2, 3, 1, 2), normal(4)), {"padding": 1, "dilation": (1, 2, 1)}),
    ("conv_transpose1d", (SERIES, normal(4, 3, 3), normal(3)), {"stride": 2, "padding": 1, "output_padding": 1}),
    ("conv_transpose2d", (PICTURE, normal(4, 5, 3, 2)), {}),
    ("conv_transpose2d", (PICTURE, normal(4, 3, 3, 3), normal(6)), {"stride": (3, 2), "groups": 2, "dilation": 2}),
    ("conv_transpose3d", (VOLUME, normal(2, 3, 3, 1, 2), normal(3)), {"stride": 2, "padding": (1, 0, 1)}),
    ("conv_transpose3d", (VOLUME, normal(2, 3, 3, 2, 2)), {"stride": 2, "output_padding": (1, 0, 1), "groups": 2}),
    ("reshape", (X, (7, -1)), {}),
    ("flatten", (IMAGE,), {"start_dim": 1}),
    ("transpose", (IMAGE, 1, -1), {}),
    ("permute", (IMAGE, (3, 0, 2, 1)), {}),
    ("unsqueeze", (X, 1), {}),
    ("squeeze", (X[:, None, :].copy(),), {}),
    ("squeeze", (X, 0), {}),
    ("expand", (X, (3, -1, 7)), {}),
    ("cat", ((X, Y),), {"dim": 1}),
    ("stack", ((X, Y),), {"dim": 2}),
    ("chunk", (X, 3), {"dim": 1}),
    ("narrow", (X, 1, 2, 3), {}),
    ("select", (X, 1, 2), {}),
    ("flip", (X, 1), {}),
    ("flip", (X, (0, 1)), {}),
    ("roll", (X, 2, 1), {}),
    ("roll", (PICTURE, (-2, 3), (1, -1)), {}),
    ("pad", (IMAGE, (2, 1, 0, 3)), {}),
    ("pad", (X, (1, 0)), {"value": -2.0}),
    ("unfold", (PICTURE, 2, 3, 3), {}),
    ("unfold", (PICTURE, -1, 4, 1), {}),
    ("lstm", (SEQUENCE, (normal(2, 3, 6), normal(2, 3, 6, seed=1)), cells(4, (5, 6))), {}),
    ("lstm", (SEQUENCE, (normal(4, 3, 6), normal(4, 3, 6, seed=1)), cells(4, (5, 5, 12, 12))), {"bidirectional": True}),
    ("lstm", (SEQUENCE, (normal(1, 4, 6), normal(1, 4, 6, seed=1)), cells(4, (5,))), {"batch_first": True}),
    ("gru", (SEQUENCE, normal(2, 3, 6), cells(3, (5, 6))), {}),
    ("gru", (SEQUENCE, normal(4, 4, 6), cells(3, (5, 5, 12, 12))), {"bidirectional": True, "batch_first": True}),
    ("diag", (X[0],), {}),
    ("tril", (X,), {}),
    ("triu", (X, 1), {}),
    ("masked_fill", (X, MASK, -2.0), {}),
    ("operand", (X,), {}),
    ("dropout", (X,), {"p": 0.3}),
    ("zeros_like", (X,), {}),
    ("ones_like", (X,), {}),
    *[(name, (X, Y), {"reduction": r}) for name in ("mse_loss", "l1_loss") for r in ("mean", "sum", "none")],
    ("smooth_l1_loss", (X, Y), {"beta": 0.5}),
    ("huber_loss", (X, Y), {"delta": 0.5}),
    ("kl_div", (np.log(PROBABILITIES), PROBABILITIES[::-1].copy()), {"reduction": "batchmean"}),
    ("kl_div", (X, Y), {"reduction": "sum", "log_target": True}),
    ("cross_entropy", (X, np.array([0, 6, 3, 3, 1])), {}),
    ("cosine_similarity", (X, Y), {"dim": 1}),
    ("triplet_margin_loss", (X, Y, Z), {"margin": 0.5}),
]
