"""Residual networks, KernelBench level 3: ResNet and its basic block; RegNet, which adds nothing back."""

import itertools

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task

Shape = tuple[int, ...]


def basic_block(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x):
        kernel = next(left)
        x = nn.conv2d(x, kernel, padding=kernel.shape[-1] // 2)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    out = conv_norm(nn.relu(conv_norm(x)))
    return nn.relu(out + conv_norm(x))


def resnet_18(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    def block(x, stride):
        out = conv_norm(nn.relu(conv_norm(x, stride)))
        return nn.relu(out + (x if stride == 1 else conv_norm(x, stride)))

    x = nn.max_pool2d(nn.relu(conv_norm(x, stride=2)), 3, stride=2, padding=1)
    for first_stride in (1, 2, 2, 2):
        x = block(block(x, first_stride), stride=1)
    x = nn.flatten(nn.adaptive_avg_pool2d(x, (1, 1)), start_dim=1)
    return nn.linear(x, next(left), next(left))


def resnet_101(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x, stride=1):
        kernel = next(left)
        x = nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    def block(x, stride, projected):
        out = nn.relu(conv_norm(x))
        out = conv_norm(nn.relu(conv_norm(out, stride)))
        return nn.relu(out + (conv_norm(x, stride) if projected else x))

    x = nn.max_pool2d(nn.relu(conv_norm(x, stride=2)), 3, stride=2, padding=1)
    for first_stride, blocks in ((1, 3), (2, 4), (2, 23), (2, 3)):
        x = block(x, first_stride, projected=True)
        for _ in range(1, blocks):
            x = block(x, stride=1, projected=False)
    x = nn.flatten(nn.adaptive_avg_pool2d(x, (1, 1)), start_dim=1)
    return nn.linear(x, next(left), next(left))


def regnet(nn, x, *weights):
    left = iter(weights)

    def conv_norm(x):
        x = nn.conv2d(x, next(left), next(left), padding=1)
        return nn.batch_norm(x, next(left), next(left), eps=1e-5)

    for _ in range(3):
        x = nn.relu(conv_norm(nn.relu(conv_norm(x))))
        x = nn.max_pool2d(x, 2, stride=2)
    return nn.linear(nn.mean(x, dim=(2, 3)), next(left), next(left))


def conv_norm(conv: str, norm: str, shape: Shape) -> tuple[Array, ...]:
    """A convolution without a bias and the batch norm after it."""
    return layer(conv, shape, bias=False) + affine(norm, shape[0])


def block_layers(prefix: str, shapes: list[Shape], projection: Shape | None) -> tuple[Array, ...]:
    """Convolutions and norms of a residual block, then those of its shortcut where it has some."""
    numbered = enumerate(shapes, start=1)
    arrays = sum((conv_norm(f"{prefix}conv{at}", f"{prefix}bn{at}", shape) for at, shape in numbered), ())
    if projection is None:
        return arrays
    return arrays + conv_norm(f"{prefix}downsample.0", f"{prefix}downsample.1", projection)


def resnet_layers(depths: tuple[int, ...], bottleneck: bool, width: int, classes: int) -> tuple[Array, ...]:
    """Four stages of `depths` blocks; the first is `width` wide, each other twice as wide as the one before."""
    arrays, ins = conv_norm("conv1", "bn1", (width, 3, 7, 7)), width
    for stage, depth in enumerate(depths):
        w = width * 2**stage
        outs = 4 * w if bottleneck else w
        for at in range(depth):
            shapes: list[Shape] = [(w, ins, 3, 3), (w, w, 3, 3)]
            if bottleneck:
                shapes = [(w, ins, 1, 1), (w, w, 3, 3), (outs, w, 1, 1)]
            projection = (outs, ins, 1, 1) if ins != outs else None
            arrays += block_layers(f"layer{stage + 1}.{at}.", shapes, projection)
            ins = outs
    return arrays + layer("fc", (classes, ins))


def basic_block_layers(inputs: int, outputs: int) -> tuple[Array, ...]:
    shapes: list[Shape] = [(outputs, inputs, 3, 3), (outputs, outputs, 3, 3)]
    return block_layers("", shapes, projection=(outputs, inputs, 1, 1))


def regnet_layers(inputs: int, widths: tuple[int, ...], classes: int) -> tuple[Array, ...]:
    arrays: tuple[Array, ...] = ()
    for stage, (ins, outs) in enumerate(itertools.pairwise((inputs, *widths))):
        prefix = f"feature_extractor.{stage}"
        arrays += layer(f"{prefix}.0", (outs, ins, 3, 3)) + affine(f"{prefix}.1", outs)
        arrays += layer(f"{prefix}.3", (outs, outs, 3, 3)) + affine(f"{prefix}.4", outs)
    return arrays + layer("fc", (classes, widths[-1]))


BASIC_BLOCK = Task(
    id="3_008",
    name="ResNetBasicBlock",
    family="model",
    source=forward_text(basic_block),
    sizes={
        "cpu": uniform(x=(3, 3, 45, 45)) + basic_block_layers(3, 20),
        "kb": uniform(x=(10, 3, 224, 224)) + basic_block_layers(3, 64),
        "kb_v0": normal(x=(10, 3, 224, 224)) + basic_block_layers(3, 64),
    },
    precision="tf32",
    notes=("The shortcut is a 1x1 convolution and a batch norm, since 3 channels become 64.",),
)

RESNET_18 = Task(
    id="3_009",
    name="ResNet18",
    family="model",
    source=forward_text(resnet_18),
    sizes={
        "cpu": uniform(x=(4, 3, 65, 65)) + resnet_layers((2, 2, 2, 2), bottleneck=False, width=10, classes=70),
        "kb": uniform(x=(2, 3, 224, 224)) + resnet_layers((2, 2, 2, 2), bottleneck=False, width=64, classes=1000),
        "kb_v0": normal(x=(2, 3, 224, 224)) + resnet_layers((2, 2, 2, 2), bottleneck=False, width=64, classes=1000),
    },
    precision="tf32",
)

RESNET_101 = Task(
    id="3_010",
    name="ResNet101",
    family="model",
    source=forward_text(resnet_101),
    sizes={
        "cpu": uniform(x=(4, 3, 65, 65)) + resnet_layers((3, 4, 23, 3), bottleneck=True, width=8, classes=70),
        "kb": uniform(x=(10, 3, 224, 224)) + resnet_layers((3, 4, 23, 3), bottleneck=True, width=64, classes=1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + resnet_layers((3, 4, 23, 3), bottleneck=True, width=64, classes=1000),
    },
    precision="tf32",
    notes=("Ill-conditioned: a hundred norms in a row let a change of the image by 1e-6 move the logits by 1e-3.",),
)

REGNET = Task(
    id="3_027",
    name="RegNet",
    family="model",
    source=forward_text(regnet),
    sizes={
        "cpu": uniform(x=(3, 3, 45, 45)) + regnet_layers(3, (12, 20, 40), classes=10),
        "kb": uniform(x=(8, 3, 224, 224)) + regnet_layers(3, (64, 128, 256), classes=10),
        "kb_v0": normal(x=(8, 3, 224, 224)) + regnet_layers(3, (64, 128, 256), classes=10),
    },
    precision="tf32",
    notes=("A batch norm takes the mean out again, so the biases of convolutions change no output.",),
)
