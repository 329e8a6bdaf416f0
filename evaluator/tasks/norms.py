"""Norms over images of KernelBench level 1: batch, instance and group norm."""

from evaluator.tasks.notation import forward_text, normal, parameter, uniform
from evaluator.tasks.task import Array, Task


def batch_norm(nn, x, bn_weight, bn_bias):
    return nn.batch_norm(x, bn_weight, bn_bias, eps=1e-5)


def instance_norm(nn, x):
    return nn.instance_norm(x, eps=1e-5)


def group_norm(nn, x, gn_weight, gn_bias):
    return nn.group_norm(x, 8, gn_weight, gn_bias, eps=1e-5)


def affine(layer: str, channels: int) -> tuple[Array, Array]:
    """Weight and bias of a norm, as PyTorch initialises them."""
    return (
        parameter(f"{layer}.weight", (channels,), "constant(1)"),
        parameter(f"{layer}.bias", (channels,), "constant(0)"),
    )


BATCH_NORM = Task(
    id="1_033",
    name="BatchNorm",
    family="rowwise",
    source=forward_text(batch_norm),
    sizes={
        "cpu": uniform(x=(7, 64, 30, 33)) + affine("bn", 64),
        "kb": uniform(x=(64, 64, 512, 512)) + affine("bn", 64),
        "kb_v0": normal(x=(16, 64, 256, 256)) + affine("bn", 64),
    },
    notes=("Training mode, which the benchmark never leaves: statistics are the batch's; running ones are no output.",),
)

INSTANCE_NORM = Task(
    id="1_034",
    name="InstanceNorm",
    family="rowwise",
    source=forward_text(instance_norm),
    sizes={
        "cpu": uniform(x=(7, 64, 30, 33)),
        "kb": uniform(x=(112, 64, 512, 512)),
        "kb_v0": normal(x=(16, 64, 256, 256)),
    },
)

GROUP_NORM = Task(
    id="1_035",
    name="GroupNorm",
    family="rowwise",
    source=forward_text(group_norm),
    sizes={
        "cpu": uniform(x=(7, 64, 30, 33)) + affine("gn", 64),
        "kb": uniform(x=(112, 64, 512, 512)) + affine("gn", 64),
        "kb_v0": normal(x=(16, 64, 256, 256)) + affine("gn", 64),
    },
)
