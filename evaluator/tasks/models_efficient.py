"""EfficientNet and its inverted bottleneck, KernelBench level 3."""

import itertools

from evaluator.tasks.models_residual import conv_norm
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task

# EfficientNetB0: channels after each block, and the side of its depthwise kernel.
_B0 = (
    (16, 3), (24, 3), (24, 3), (40, 5), (40, 5), (80, 3), (80, 3), (112, 5), (112, 5), (192, 5), (192, 5), (192, 5),
    (320, 3),
)  # fmt: skip
_B1 = (16, 24, 40, 80, 112, 192, 320)
_B2 = (96, 144, 192, 288, 384)


def mbconv(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    x = nn.relu6(conv_norm(x))
    return conv_norm(nn.relu6(conv_norm(x, stride=2)))


def efficientnet_b0(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    def block(x, stride, expanded=True):
        out = nn.relu6(conv_norm(x)) if expanded else x
        out = conv_norm(nn.relu6(conv_norm(out, stride)))
        return out + x if stride == 1 and out.shape[1] == x.shape[1] else out

    x = nn.relu(conv_norm(x, stride=2))
    x = block(x, stride=1, expanded=False)
    for stride in (2, 1, 2, 1, 2, 1, 1, 1, 2, 1, 1, 1):
        x = block(x, stride)
    x = nn.adaptive_avg_pool2d(nn.relu(conv_norm(x)), (1, 1))
    return nn.linear(nn.flatten(x, start_dim=1), next(left), next(left))


def efficientnet_b1(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    x = nn.relu(conv_norm(x, stride=2))
    for stride in (1, 2, 2, 2, 1, 2, 1):
        x = nn.relu6(conv_norm(x))
        x = conv_norm(nn.relu6(conv_norm(x, stride)))
    x = nn.adaptive_avg_pool2d(nn.relu(conv_norm(x)), (1, 1))
    return nn.linear(nn.flatten(x, start_dim=1), next(left), next(left))


def efficientnet_b2(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    x = nn.relu(conv_norm(x, stride=2))
    for stride in (1, 2, 2, 2, 1):
        x = nn.relu(conv_norm(nn.relu(conv_norm(x)), stride))
        x = nn.adaptive_avg_pool2d(x, (1, 1))
        x = nn.relu(nn.conv2d(x, next(left)))
        x = nn.sigmoid(nn.conv2d(x, next(left)))
        x = conv_norm(x)
    x = nn.adaptive_avg_pool2d(nn.relu(conv_norm(x)), (1, 1))
    return nn.linear(nn.flatten(x, start_dim=1), next(left), next(left))


def mbconv_layers(prefix: str, inputs: int, outputs: int, kernel: int, expansion: int) -> tuple[Array, ...]:
    """A block whose three steps have names; one that widens nothing starts with its depthwise convolution."""
    inside = inputs * expansion
    shapes = {"depthwise": (inside, 1, kernel, kernel), "project": (outputs, inside, 1, 1)}
    if expansion != 1:
        shapes = {"expand": (inside, inputs, 1, 1), **shapes}
    steps = [(f"{prefix}{step}_conv", shape) for step, shape in shapes.items()]
    return sum((conv_norm(f"{step}.0", f"{step}.1", shape) for step, shape in steps), ())


def b0_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """All channels of the model divided by `divisor`."""
    ins, last = 32 // divisor, 1280 // divisor
    arrays = conv_norm("conv1", "bn1", (ins, 3, 3, 3))
    for at, (channels, kernel) in enumerate(_B0):
        outs = channels // divisor
        arrays += mbconv_layers(f"blocks.{at}.", ins, outs, kernel, expansion=6 if at else 1)
        ins = outs
    return arrays + conv_norm("conv2", "bn2", (last, ins, 1, 1)) + layer("fc", (classes, last))


def b1_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """As `b0_layers`."""
    widths, last = [32 // divisor, *(channels // divisor for channels in _B1)], 1280 // divisor
    arrays = conv_norm("conv1", "bn1", (widths[0], 3, 3, 3))
    for at, (ins, outs) in enumerate(itertools.pairwise(widths), start=1):
        inside = ins * (6 if at > 1 else 1)
        for place, shape in ((0, (inside, ins, 1, 1)), (3, (inside, 1, 3, 3)), (6, (outs, inside, 1, 1))):
            arrays += conv_norm(f"mbconv{at}.{place}", f"mbconv{at}.{place + 1}", shape)
    return arrays + conv_norm("conv2", "bn2", (last, widths[-1], 1, 1)) + layer("fc", (classes, last))


def b2_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """As `b0_layers`."""
    widths, last = [32 // divisor, *(channels // divisor for channels in _B2)], 1408 // divisor
    arrays = conv_norm("conv1", "bn1", (widths[0], 3, 3, 3))
    for at, (ins, outs) in enumerate(itertools.pairwise(widths), start=1):
        inside, name = ins * (6 if at > 1 else 3), f"mbconv{at}"
        arrays += conv_norm(f"{name}.0", f"{name}.1", (inside, ins, 1, 1))
        arrays += conv_norm(f"{name}.3", f"{name}.4", (inside, 1, 3, 3))
        arrays += layer(f"{name}.7", (inside // 4, inside, 1, 1), bias=False)
        arrays += layer(f"{name}.9", (inside, inside // 4, 1, 1), bias=False)
        arrays += conv_norm(f"{name}.11", f"{name}.12", (outs, inside, 1, 1))
    return arrays + conv_norm("conv_final", "bn_final", (last, widths[-1], 1, 1)) + layer("fc", (classes, last))


MBCONV = Task(
    id="3_021",
    name="EfficientNetMBConv",
    family="model",
    source=forward_text(mbconv),
    sizes={
        "cpu": uniform(x=(2, 10, 45, 45)) + mbconv_layers("", 10, 18, kernel=5, expansion=6),
        "kb": uniform(x=(10, 112, 224, 224)) + mbconv_layers("", 112, 192, kernel=5, expansion=6),
        "kb_v0": normal(x=(10, 112, 224, 224)) + mbconv_layers("", 112, 192, kernel=5, expansion=6),
    },
    precision="tf32",
)

B0 = Task(
    id="3_022",
    name="EfficientNetB0",
    family="model",
    source=forward_text(efficientnet_b0),
    sizes={
        "cpu": uniform(x=(4, 3, 67, 67)) + b0_layers(divisor=8, classes=70),
        "kb": uniform(x=(10, 3, 224, 224)) + b0_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + b0_layers(divisor=1, classes=1000),
    },
    precision="tf32",
)

B1 = Task(
    id="3_023",
    name="EfficientNetB1",
    family="model",
    source=forward_text(efficientnet_b1),
    sizes={
        "cpu": uniform(x=(4, 3, 67, 67)) + b1_layers(divisor=8, classes=70),
        "kb": uniform(x=(10, 3, 240, 240)) + b1_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(10, 3, 240, 240)) + b1_layers(divisor=1, classes=1000),
    },
    precision="tf32",
    notes=("Without residual sums, unlike the published model.",),
)

B2 = Task(
    id="3_024",
    name="EfficientNetB2",
    family="model",
    source=forward_text(efficientnet_b2),
    sizes={
        "cpu": uniform(x=(20, 3, 33, 33)) + b2_layers(divisor=8, classes=70),
        "kb": uniform(x=(2, 3, 224, 224)) + b2_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(2, 3, 224, 224)) + b2_layers(divisor=1, classes=1000),
    },
    precision="tf32",
    notes=(
        "Ill-conditioned: squeeze and excitation stand in line, so that after the first average over an image every "
        "map is 1 x 1 and a norm sees as many numbers a channel as there are images. Of the two at kb and kb_v0 it "
        "makes +1 and -1, whichever is larger: rounding alone moves outputs by as much as their range.",
    ),
)
