"""Every library computes at the task's class: in fp32 no operand is rounded, in tf32 those of convolutions may be."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from evaluator.nn import jax_nn

_FLAGS = """
import json
from evaluator.baselines import pytorch
found = {}
for precision in ("fp32", "tf32"):
    torch = pytorch._torch(precision)
    found[precision] = [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32]
import os
print(json.dumps([found, sorted(name for name in os.environ if "TF32" in name)]))
"""


@pytest.mark.torch
def test_pytorch_rounds_operands_of_convolutions_in_class_tf32_alone():
    environment = {**os.environ, "NVIDIA_TF32_OVERRIDE": "1", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}
    answer = subprocess.run([sys.executable, "-c", _FLAGS], capture_output=True, text=True, env=environment, check=True)
    found, overrides = json.loads(answer.stdout)
    assert found == {"fp32": [False, False], "tf32": [False, True]}  # products, convolutions
    assert overrides == []


@pytest.mark.parametrize(
    ("precision", "convolutions"),
    [("highest", jax.lax.Precision.HIGHEST), ("tensorfloat32", jax.lax.Precision.HIGH)],
)
def test_jax_rounds_operands_of_convolutions_alone_and_where_the_process_allows_it(precision, convolutions):
    x, weight, square = jnp.ones((1, 2, 8, 8)), jnp.ones((3, 2, 3, 3)), jnp.ones((8, 8))
    with jax.default_matmul_precision(precision):
        straight = jax.make_jaxpr(jax_nn.conv2d)(x, weight)
        transposed = jax.make_jaxpr(jax_nn.conv_transpose2d)(x, jnp.ones((2, 3, 3, 3)))
        product = jax.make_jaxpr(jax_nn.matmul)(square, square)
    for jaxpr in (straight, transposed):
        assert asked(jaxpr, "conv_general_dilated") == {convolutions}
    assert asked(product, "dot_general") == {jax.lax.Precision.HIGHEST}


def asked(jaxpr, primitive):
    """Precisions of the operands of all operations of a kind."""
    found = [each.params["precision"] for each in equations(jaxpr.jaxpr) if each.primitive.name == primitive]
    return {precision for pair in found for precision in pair}


def equations(jaxpr):
    for each in jaxpr.eqns:
        yield each
        inner = each.params.get("jaxpr")
        if inner is not None:
            yield from equations(inner.jaxpr)
