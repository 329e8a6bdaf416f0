"""ShuffleNet and its unit, KernelBench level 3."""

from evaluator.tasks.models_residual import conv_norm
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task

GROUPS = 3


def shuffle_unit(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    def shuffle(x):
        batch, channels, height, width = x.shape
        x = nn.transpose(nn.reshape(x, (batch, 3, channels // 3, height, width)), 1, 2)
        return nn.reshape(x, (batch, channels, height, width))

    out = conv_norm(nn.relu(conv_norm(x)))
    out = nn.relu(conv_norm(shuffle(out)))
    return out + conv_norm(x)


def shufflenet(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    def shuffle(x):
        batch, channels, height, width = x.shape
        x = nn.transpose(nn.reshape(x, (batch, 3, channels // 3, height, width)), 1, 2)
        return nn.reshape(x, (batch, channels, height, width))

    def unit(x, projected):
        out = conv_norm(nn.relu(conv_norm(x)))
        out = nn.relu(conv_norm(shuffle(out)))
        return out + (conv_norm(x) if projected else x)

    x = nn.relu(conv_norm(x, stride=2))
    x = nn.max_pool2d(x, 3, stride=2, padding=1)
    for units in (3, 7, 3):
        x = unit(x, projected=True)
        for _ in range(1, units):
            x = unit(x, projected=False)
    x = nn.adaptive_avg_pool2d(nn.relu(conv_norm(x)), (1, 1))
    return nn.linear(nn.flatten(x, start_dim=1), next(left), next(left))


def unit_layers(prefix: str, inputs: int, outputs: int) -> tuple[Array, ...]:
    """Grouped, depthwise and grouped convolution, a quarter as wide between them; then the shortcut's, if any."""
    inside = outputs // 4
    arrays = (
        *conv_norm(f"{prefix}conv1", f"{prefix}bn1", (inside, inputs // GROUPS, 1, 1)),
        *conv_norm(f"{prefix}conv2", f"{prefix}bn2", (inside, 1, 3, 3)),
        *conv_norm(f"{prefix}conv3", f"{prefix}bn3", (outputs, inside // GROUPS, 1, 1)),
    )
    if inputs == outputs:
        return arrays
    return arrays + conv_norm(f"{prefix}shortcut.0", f"{prefix}shortcut.1", (outputs, inputs, 1, 1))


def shufflenet_layers(widths: tuple[int, ...], last: int, classes: int) -> tuple[Array, ...]:
    """`widths` are channels after the first convolution and after each of the three stages."""
    ins = widths[0]
    arrays = conv_norm("conv1", "bn1", (ins, 3, 3, 3))
    for stage, (units, outs) in enumerate(zip((3, 7, 3), widths[1:], strict=True), start=2):
        for at in range(units):
            arrays += unit_layers(f"stage{stage}.{at}.", ins, outs)
            ins = outs
    return arrays + conv_norm("conv5", "bn5", (last, ins, 1, 1)) + layer("fc", (classes, last))


UNIT = Task(
    id="3_025",
    name="ShuffleNetUnit",
    family="model",
    source=forward_text(shuffle_unit),
    sizes={
        "cpu": uniform(x=(3, 24, 30, 33)) + unit_layers("", 24, 48),
        "kb": uniform(x=(10, 240, 224, 224)) + unit_layers("", 240, 480),
        "kb_v0": normal(x=(10, 240, 224, 224)) + unit_layers("", 240, 480),
    },
    precision="tf32",
)

SHUFFLENET = Task(
    id="3_026",
    name="ShuffleNet",
    family="model",
    source=forward_text(shufflenet),
    sizes={
        "cpu": uniform(x=(3, 3, 45, 45)) + shufflenet_layers((12, 36, 60, 96), 100, 70),
        "kb": uniform(x=(10, 3, 224, 224)) + shufflenet_layers((24, 240, 480, 960), 1024, 1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + shufflenet_layers((24, 240, 480, 960), 1024, 1000),
    },
    precision="tf32",
)
