"""SqueezeNet and its fire module, KernelBench level 3."""

from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task

# Channels of the fire modules by place in the sequence: squeezed, and of either half of what follows.
_FIRES = {
    3: (16, 64),
    4: (16, 64),
    5: (32, 128),
    7: (32, 128),
    8: (48, 192),
    9: (48, 192),
    10: (64, 256),
    12: (64, 256),
}


def fire_module(nn, x, *weights):
    left = iter(weights)

    def conv(x, padding=0):
        return nn.relu(nn.conv2d(x, next(left), next(left), padding=padding))

    x = conv(x)
    return nn.cat((conv(x), conv(x, padding=1)), dim=1)


def squeezenet(nn, x, *weights):
    left = iter(weights)

    def conv(x, stride=1, padding=0):
        return nn.relu(nn.conv2d(x, next(left), next(left), stride=stride, padding=padding))

    def fire(x):
        x = conv(x)
        return nn.cat((conv(x), conv(x, padding=1)), dim=1)

    x = conv(x, stride=2)
    for fires in (3, 4, 1):
        x = nn.max_pool2d(x, 3, stride=2, ceil_mode=True)
        for _ in range(fires):
            x = fire(x)
    x = nn.adaptive_avg_pool2d(conv(x), (1, 1))
    return nn.flatten(x, start_dim=1)


def fire_layers(prefix: str, inputs: int, squeezed: int, expanded: int) -> tuple[Array, ...]:
    return (
        *layer(f"{prefix}squeeze", (squeezed, inputs, 1, 1)),
        *layer(f"{prefix}expand1x1", (expanded, squeezed, 1, 1)),
        *layer(f"{prefix}expand3x3", (expanded, squeezed, 3, 3)),
    )


def squeezenet_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """All channels of the model divided by `divisor`."""
    inputs = 96 // divisor
    arrays = layer("features.0", (inputs, 3, 7, 7))
    for at, (squeezed, expanded) in _FIRES.items():
        arrays += fire_layers(f"features.{at}.", inputs, squeezed // divisor, expanded // divisor)
        inputs = 2 * (expanded // divisor)
    return arrays + layer("classifier.1", (classes, inputs, 1, 1))


FIRE_MODULE = Task(
    id="3_017",
    name="SqueezeNetFireModule",
    family="model",
    source=forward_text(fire_module),
    sizes={
        "cpu": uniform(x=(3, 3, 45, 45)) + fire_layers("", 3, 6, 30),
        "kb": uniform(x=(128, 3, 256, 256)) + fire_layers("", 3, 6, 64),
        "kb_v0": normal(x=(10, 3, 224, 224)) + fire_layers("", 3, 6, 64),
    },
    precision="tf32",
)

SQUEEZENET = Task(
    id="3_018",
    name="SqueezeNet",
    family="model",
    source=forward_text(squeezenet),
    sizes={
        "cpu": uniform(x=(3, 3, 100, 100)) + squeezenet_layers(divisor=4, classes=70),
        "kb": uniform(x=(64, 3, 512, 512)) + squeezenet_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(1, 3, 224, 224)) + squeezenet_layers(divisor=1, classes=1000),
    },
    precision="tf32",
    notes=(
        "Insensitive: initial weights shrink the signal and no norm restores it; outputs of two images agree "
        "within 1e-4.",
        "Poolings round up: a last window that starts inside the image counts, though it reaches past the end.",
    ),
)
