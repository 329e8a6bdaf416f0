"""Small whole models, KernelBench level 3."""

import itertools

from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


def mlp(nn, x, network_0_weight, network_0_bias, network_2_weight, network_2_bias, network_4_weight, network_4_bias):
    x = nn.relu(nn.linear(x, network_0_weight, network_0_bias))
    x = nn.relu(nn.linear(x, network_2_weight, network_2_bias))
    return nn.linear(x, network_4_weight, network_4_bias)


def deep_mlp(nn, x, *weights):
    layers = list(zip(weights[::2], weights[1::2], strict=True))
    for weight, bias in layers[:-1]:
        x = nn.relu(nn.linear(x, weight, bias))
    return nn.linear(x, *layers[-1])


def lenet(
    nn, x, conv1_weight, conv1_bias, conv2_weight, conv2_bias,
    fc1_weight, fc1_bias, fc2_weight, fc2_bias, fc3_weight, fc3_bias,
):  # fmt: skip
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, conv1_weight, conv1_bias)), 2, stride=2)
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, conv2_weight, conv2_bias)), 2, stride=2)
    x = nn.flatten(x, start_dim=1)
    x = nn.relu(nn.linear(x, fc1_weight, fc1_bias))
    x = nn.relu(nn.linear(x, fc2_weight, fc2_bias))
    return nn.linear(x, fc3_weight, fc3_bias)


def mlp_layers(*widths: int) -> tuple[Array, ...]:
    """Linear layers between `widths`, numbered as in a sequence with an activation after each."""
    pairs = enumerate(itertools.pairwise(widths))
    return sum((layer(f"network.{2 * at}", (outputs, inputs)) for at, (inputs, outputs) in pairs), ())


def lenet_layers(classes: int) -> tuple[Array, ...]:
    return (
        *layer("conv1", (6, 1, 5, 5)),
        *layer("conv2", (16, 6, 5, 5)),
        *layer("fc1", (120, 400)),
        *layer("fc2", (84, 120)),
        *layer("fc3", (classes, 84)),
    )


MLP = Task(
    id="3_001",
    name="MLP",
    family="model",
    source=forward_text(mlp),
    sizes={
        "cpu": uniform(x=(20, 250)) + mlp_layers(250, 300, 280, 130),
        "kb": uniform(x=(128, 16384)) + mlp_layers(16384, 16384, 16384, 8192),
        "kb_v0": normal(x=(1, 1000)) + mlp_layers(1000, 400, 800, 500),
    },
)

WIDE_MLP = Task(
    id="3_002",
    name="ShallowWideMLP",
    family="model",
    source=forward_text(mlp),
    sizes={
        "cpu": uniform(x=(20, 270)) + mlp_layers(270, 500, 500, 300),
        "kb": uniform(x=(128, 16384)) + mlp_layers(16384, 32768, 32768, 16384),
        "kb_v0": normal(x=(1, 1000)) + mlp_layers(1000, 2000, 2000, 10),
    },
)

DEEP_MLP = Task(
    id="3_003",
    name="DeepNarrowMLP",
    family="model",
    source=forward_text(deep_mlp),
    sizes={
        "cpu": uniform(x=(40, 300)) + mlp_layers(300, *[70] * 16, 250),
        "kb": uniform(x=(1024, 8192)) + mlp_layers(8192, *[1024] * 16, 8192),
        "kb_v0": normal(x=(1, 1000)) + mlp_layers(1000, *[50] * 8, 10),
    },
    notes=(
        "Insensitive: each layer shrinks what it is given, so that after all of them the biases alone decide; "
        "outputs of two inputs agree within 1e-4.",
    ),
)

LENET = Task(
    id="3_004",
    name="LeNet5",
    family="model",
    source=forward_text(lenet),
    sizes={
        "cpu": uniform(x=(12, 1, 32, 32)) + lenet_layers(20),
        "kb": uniform(x=(4096, 1, 32, 32)) + lenet_layers(20),
        "kb_v0": normal(x=(1, 1, 32, 32)) + lenet_layers(10),
    },
    precision="tf32",
)
