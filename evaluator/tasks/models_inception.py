"""Models of parallel branches, KernelBench level 3: GoogLeNet and its inception module."""

from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task

# Channels of a module: 1x1 branch; 3x3 branch, reduced and out; 5x5 branch, reduced and out; pooled branch.
Widths = tuple[int, int, int, int, int, int]

_MODULES: dict[str, Widths] = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def inception_module(nn, x, *weights):
    left = iter(weights)

    def conv(x):
        kernel, bias = next(left), next(left)
        return nn.conv2d(x, kernel, bias, padding=kernel.shape[-1] // 2)

    pooled = nn.max_pool2d(x, 3, stride=1, padding=1)
    return nn.cat((conv(x), conv(conv(x)), conv(conv(x)), conv(pooled)), dim=1)


def googlenet(nn, x, *weights):
    left = iter(weights)

    def conv(x, stride=1):
        kernel, bias = next(left), next(left)
        return nn.conv2d(x, kernel, bias, stride=stride, padding=kernel.shape[-1] // 2)

    def inception(x):
        pooled = nn.max_pool2d(x, 3, stride=1, padding=1)
        return nn.cat((conv(x), conv(conv(x)), conv(conv(x)), conv(pooled)), dim=1)

    x = nn.max_pool2d(nn.relu(conv(x, stride=2)), 3, stride=2, padding=1)
    x = nn.relu(conv(nn.relu(conv(x))))
    for modules in (2, 5, 2):
        x = nn.max_pool2d(x, 3, stride=2, padding=1)
        for _ in range(modules):
            x = inception(x)
    x = nn.flatten(nn.adaptive_avg_pool2d(x, (1, 1)), start_dim=1)
    return nn.linear(x, next(left), next(left))


def module_layers(prefix: str, inputs: int, widths: Widths) -> tuple[Array, ...]:
    """The convolutions of an inception module, branch by branch."""
    one, reduced3, three, reduced5, five, pooled = widths
    return (
        *layer(f"{prefix}branch1x1", (one, inputs, 1, 1)),
        *layer(f"{prefix}branch3x3.0", (reduced3, inputs, 1, 1)),
        *layer(f"{prefix}branch3x3.1", (three, reduced3, 3, 3)),
        *layer(f"{prefix}branch5x5.0", (reduced5, inputs, 1, 1)),
        *layer(f"{prefix}branch5x5.1", (five, reduced5, 5, 5)),
        *layer(f"{prefix}branch_pool.1", (pooled, inputs, 1, 1)),
    )


def googlenet_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """All channels of the model divided by `divisor`."""
    first, inputs = 64 // divisor, 192 // divisor
    arrays = (
        *layer("conv1", (first, 3, 7, 7)),
        *layer("conv2", (first, first, 1, 1)),
        *layer("conv3", (inputs, first, 3, 3)),
    )
    for name, (one, reduced3, three, reduced5, five, pooled) in _MODULES.items():
        widths = (
            one // divisor,
            reduced3 // divisor,
            three // divisor,
            reduced5 // divisor,
            five // divisor,
            pooled // divisor,
        )
        arrays += module_layers(f"inception{name}.", inputs, widths)
        inputs = (one + three + five + pooled) // divisor
    return arrays + layer("fc", (classes, inputs))


INCEPTION_MODULE = Task(
    id="3_006",
    name="GoogleNetInceptionModule",
    family="model",
    source=forward_text(inception_module),
    sizes={
        "cpu": uniform(x=(2, 60, 30, 33)) + module_layers("", 60, (24, 12, 26, 4, 6, 8)),
        "kb": uniform(x=(10, 480, 224, 224)) + module_layers("", 480, (192, 96, 208, 16, 48, 64)),
        "kb_v0": normal(x=(10, 480, 224, 224)) + module_layers("", 480, (192, 96, 208, 16, 48, 64)),
    },
    precision="tf32",
)

GOOGLENET = Task(
    id="3_007",
    name="GoogleNetInceptionV1",
    family="model",
    source=forward_text(googlenet),
    sizes={
        "cpu": uniform(x=(2, 3, 67, 67)) + googlenet_layers(divisor=8, classes=70),
        "kb": uniform(x=(10, 3, 224, 224)) + googlenet_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + googlenet_layers(divisor=1, classes=1000),
    },
    precision="tf32",
    notes=(
        "Insensitive: initial weights shrink the signal and no norm restores it; the logits of two images agree "
        "within 1e-4.",
    ),
)
