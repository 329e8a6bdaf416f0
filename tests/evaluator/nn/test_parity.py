"""Every function of the namespace, and every task, against PyTorch."""

import functools
import inspect
import json
import pathlib
import types

import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.nn import jax_nn, run
from evaluator.tasks import catalog
from evaluator.tasks.arrays import draw

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
F = torch.nn.functional

# Functions whose PyTorch form has another name or another order of arguments.
SPELLED_OTHERWISE = {
    "max": torch.amax,
    "min": torch.amin,
    "chunk": torch.chunk,
    "flip": lambda x, dims: torch.flip(x, (dims,) if isinstance(dims, int) else dims),
    "expand": lambda x, size: x.expand(*size),
    "norm": lambda x, p=2.0, dim=None, keepdim=False: torch.linalg.vector_norm(x, ord=p, dim=dim, keepdim=keepdim),
    "logsumexp": lambda x, dim=None, keepdim=False: torch.logsumexp(x, dim, keepdim),
    "instance_norm": lambda x, weight=None, bias=None, eps=1e-5: F.instance_norm(x, weight=weight, bias=bias, eps=eps),
    "batch_norm": lambda x, weight=None, bias=None, eps=1e-5: F.batch_norm(
        x, None, None, weight, bias, training=True, eps=eps
    ),
}


def torch_function(name):
    if name in SPELLED_OTHERWISE:
        return SPELLED_OTHERWISE[name]
    return getattr(F, name) if hasattr(F, name) and name not in ("sigmoid", "tanh") else getattr(torch, name)


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


X, Y, Z = normal(5, 7), normal(5, 7, seed=1), normal(5, 7, seed=2)
POSITIVE = np.abs(X) + np.float32(0.1)
IMAGE = normal(2, 6, 3, 5)
CHANNELS = normal(6), normal(6, seed=1)
SPREAD = np.concatenate([X.ravel(), 20 * Y.ravel(), np.float32([0, -0.0, 3, -3, 25, -25, 88, -88])])
MASK = Y > 0
PROBABILITIES = np.exp(X) / np.exp(X).sum(1, keepdims=True)

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
    ("bmm", (normal(3, 4, 5), normal(3, 5, 6)), {}),
    ("linear", (X, Y), {}),
    ("linear", (X, Y, normal(5)), {}),
    ("einsum", ("bijl,lk->bijk", normal(2, 3, 4, 5), normal(5, 6)), {}),
    ("outer", (X[0], Y[:, 0].copy()), {}),
    ("scaled_dot_product_attention", (normal(2, 3, 4, 5), normal(2, 3, 4, 5, seed=1), normal(2, 3, 4, 5, seed=2)), {}),
    ("scaled_dot_product_attention", (normal(2, 4, 5), normal(2, 4, 5, seed=1), X[:4, :5].copy()), {"is_causal": True}),
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
    ("diag", (X[0],), {}),
    ("tril", (X,), {}),
    ("triu", (X, 1), {}),
    ("masked_fill", (X, MASK, -2.0), {}),
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


def each_array(convert, value):
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, tuple):
        return tuple(each_array(convert, part) for part in value)
    return value


@functools.cache
def namespace():
    names = [name for name in dir(jax_nn) if not name.startswith("_") and inspect.isfunction(getattr(jax_nn, name))]
    return types.SimpleNamespace(**{name: torch_function(name) for name in names})


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_a_function_equals_pytorchs(name, arguments, keywords):
    seen = getattr(jax_nn, name)(*each_array(jnp.asarray, arguments), **keywords)
    expected = torch_function(name)(*each_array(torch.from_numpy, arguments), **keywords)
    seen, expected = (value if isinstance(value, tuple) else (value,) for value in (seen, expected))
    for ours, theirs in zip(seen, expected, strict=True):
        assert ours.shape == tuple(theirs.shape)
        np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), rtol=2e-5, atol=2e-6)


def test_every_function_is_compared():
    assert set(vars(namespace())) == {name for name, _, _ in CALLS}


REFERENCES = [(task.id, text) for task in catalog.TASKS.values() for text in (task.source, *task.sources_at.values())]


@pytest.mark.parametrize(("task_id", "source"), REFERENCES, ids=[task_id for task_id, _ in REFERENCES])
def test_a_reference_equals_pytorch(task_id, source):
    arrays = draw(catalog.TASKS[task_id], "cpu", seed=11)
    seen = run.run(source, jax_nn, [jnp.asarray(array) for array in arrays])
    expected = run.run(source, namespace(), [torch.from_numpy(array) for array in arrays])
    for ours, theirs in zip(seen, expected, strict=True):
        scale = float(theirs.double().abs().max())
        np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), rtol=2e-5, atol=2e-6 * scale)
        if theirs.dtype == torch.int64:
            np.testing.assert_array_equal(np.asarray(ours), theirs.numpy())


def write_values() -> None:
    """Remakes tests/data/task_values.json, which stands in for PyTorch where it is absent: run this file."""
    stored = {}
    for task_id, source in REFERENCES:
        arrays = draw(catalog.TASKS[task_id], "cpu", seed=11)
        (output,) = run.run(source, namespace(), [torch.from_numpy(array).double() for array in arrays])
        flat = output.double().numpy().ravel()
        picked = np.linspace(0, flat.size - 1, min(64, flat.size)).astype(int)
        values = [float(f"{value:.8g}") for value in flat[picked]]
        stored.setdefault(task_id, []).append(
            {"source": source, "shape": list(output.shape), "norm": float(np.linalg.norm(flat)), "values": values}
        )
    lines = [f'"{task_id}": {json.dumps(entries)}' for task_id, entries in stored.items()]
    (pathlib.Path(__file__).parents[2] / "data" / "task_values.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write_values()
