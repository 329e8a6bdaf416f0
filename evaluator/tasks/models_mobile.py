"""MobileNet, KernelBench level 3."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import Array, Task

# MobileNetV1: channels after each pair of a depthwise and a pointwise convolution.
_V1 = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
# MobileNetV2: how wide a block is inside, as a multiple of its input; channels out; blocks.
_V2 = ((1, 16, 1), (6, 24, 2), (6, 32, 3), (6, 64, 4), (6, 96, 3), (6, 160, 3), (6, 320, 1))


def mobilenet_v1(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.relu(nn.batch_norm(x, next(left), next(left), eps=1e-5))

    x = conv_norm(x, stride=2)
    for stride in (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1):
        x = conv_norm(conv_norm(x, stride))
    x = nn.flatten(nn.avg_pool2d(x, 7), start_dim=1)
    return nn.linear(x, next(left), next(left))


def mobilenet_v2(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        groups = x.shape[1] // kernel.shape[1]
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2, groups=groups)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    def block(x, stride, expanded=True):
        if expanded:
            x = nn.relu6(conv_norm(x))
        return conv_norm(nn.relu6(conv_norm(x, stride)))

    x = nn.relu6(conv_norm(x, stride=2))
    x = block(x, stride=1, expanded=False)
    for first_stride, blocks in ((2, 2), (2, 3), (2, 4), (1, 3), (2, 3), (1, 1)):
        x = block(x, first_stride)
        for _ in range(1, blocks):
            x = block(x, stride=1)
    x = nn.adaptive_avg_pool2d(nn.relu6(conv_norm(x)), (1, 1))
    return nn.linear(nn.flatten(x, start_dim=1), next(left), next(left))


def v1_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """All channels of the model divided by `divisor`."""
    ins = 32 // divisor
    arrays = layer("model.0.0", (ins, 3, 3, 3), bias=False) + affine("model.0.1", ins)
    for at, channels in enumerate(_V1, start=1):
        outs = channels // divisor
        arrays += layer(f"model.{at}.0", (ins, 1, 3, 3), bias=False) + affine(f"model.{at}.1", ins)
        arrays += layer(f"model.{at}.3", (outs, ins, 1, 1), bias=False) + affine(f"model.{at}.4", outs)
        ins = outs
    return arrays + layer("fc", (classes, ins))


def conv_norm_by_fan_out(conv: str, norm: str, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """A convolution drawn as MobileNetV2 draws its own, and the batch norm after it."""
    outs, _, height, width = shape
    deviation = f"{(2 / (outs * height * width)) ** 0.5:.6g}"
    return (parameter(f"{conv}.weight", shape, f"normal(0,{deviation})"), *affine(norm, outs))


def v2_block_layers(prefix: str, inputs: int, expansion: int, outputs: int) -> tuple[Array, ...]:
    inside = inputs * expansion
    shapes = [(inside, 1, 3, 3), (outputs, inside, 1, 1)]
    if expansion != 1:
        shapes.insert(0, (inside, inputs, 1, 1))
    places = [(f"{prefix}.{3 * at}", f"{prefix}.{3 * at + 1}", shape) for at, shape in enumerate(shapes)]
    return sum((conv_norm_by_fan_out(*place) for place in places), ())


def v2_layers(divisor: int, classes: int) -> tuple[Array, ...]:
    """All channels of the model divided by `divisor`. An activation has a place in the sequence, but no arrays."""
    ins = 32 // divisor
    arrays = conv_norm_by_fan_out("features.0", "features.1", (ins, 3, 3, 3))
    at = 3
    for expansion, channels, blocks in _V2:
        for _ in range(blocks):
            arrays += v2_block_layers(f"features.{at}", ins, expansion, channels // divisor)
            at, ins = at + 1, channels // divisor
    last = 1280 // divisor
    arrays += conv_norm_by_fan_out(f"features.{at}", f"features.{at + 1}", (last, ins, 1, 1))
    weight = parameter("classifier.1.weight", (classes, last), "normal(0,0.01)")
    return (*arrays, weight, parameter("classifier.1.bias", (classes,), "constant(0)"))


V1 = Task(
    id="3_019",
    name="MobileNetV1",
    family="model",
    source=forward_text(mobilenet_v1),
    sizes={
        "cpu": uniform(x=(2, 3, 195, 195)) + v1_layers(divisor=8, classes=70),
        "kb": uniform(x=(10, 3, 224, 224)) + v1_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + v1_layers(divisor=1, classes=1000),
    },
    precision="tf32",
)

V2 = Task(
    id="3_020",
    name="MobileNetV2",
    family="model",
    source=forward_text(mobilenet_v2),
    sizes={
        "cpu": uniform(x=(4, 3, 67, 67)) + v2_layers(divisor=8, classes=70),
        "kb": uniform(x=(10, 3, 224, 224)) + v2_layers(divisor=1, classes=1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + v2_layers(divisor=1, classes=1000),
    },
    precision="tf32",
    notes=(
        "Without the residual sums of the published model, which the benchmark leaves out.",
        "Ill-conditioned: fifty norms in a row let a change of the image by 1e-6 move the logits by more than 1e-4.",
    ),
)
