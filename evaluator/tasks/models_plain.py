"""Convolution models without norms, KernelBench level 3: AlexNet and VGG."""

import itertools

from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


def alexnet(nn, x, *weights):
    left = iter(weights)

    def conv(x, stride=1, padding=1):
        return nn.relu(nn.conv2d(x, next(left), next(left), stride=stride, padding=padding))

    x = nn.max_pool2d(conv(x, stride=4, padding=2), 3, stride=2)
    x = nn.max_pool2d(conv(x, padding=2), 3, stride=2)
    for _ in range(3):
        x = conv(x)
    x = nn.flatten(nn.max_pool2d(x, 3, stride=2), start_dim=1)
    for _ in range(2):
        x = nn.relu(nn.linear(x, next(left), next(left)))
    return nn.linear(x, next(left), next(left))


def vgg(nn, x, *weights):
    left = iter(weights)
    for convolutions in (2, 2, 3, 3, 3):
        for _ in range(convolutions):
            x = nn.relu(nn.conv2d(x, next(left), next(left), padding=1))
        x = nn.max_pool2d(x, 2, stride=2)
    x = nn.flatten(x, start_dim=1)
    for _ in range(2):
        x = nn.relu(nn.linear(x, next(left), next(left)))
    return nn.linear(x, next(left), next(left))


def alexnet_layers(channels: tuple[int, ...], flat: int, hidden: int, classes: int) -> tuple[Array, ...]:
    """`flat` is how many numbers of an image the convolutions leave."""
    kernels = zip((11, 5, 3, 3, 3), itertools.pairwise((3, *channels)), strict=True)
    convs = [layer(f"conv{at}", (outs, ins, k, k)) for at, (k, (ins, outs)) in enumerate(kernels, start=1)]
    widths = itertools.pairwise((flat, hidden, hidden, classes))
    lines = [layer(f"fc{at}", (outs, ins)) for at, (ins, outs) in enumerate(widths, start=1)]
    return sum(convs + lines, ())


def vgg_layers(
    depths: tuple[int, ...], channels: tuple[int, ...], flat: int, hidden: int, classes: int
) -> tuple[Array, ...]:
    """Blocks of `depths` convolutions to `channels`, numbered as in a sequence with activations and poolings."""
    arrays: tuple[Array, ...] = ()
    at, ins = 0, 3
    for depth, outs in zip(depths, channels, strict=True):
        for _ in range(depth):
            arrays += layer(f"features.{at}", (outs, ins, 3, 3))
            at, ins = at + 2, outs
        at += 1
    widths = itertools.pairwise((flat, hidden, hidden, classes))
    lines = [layer(f"classifier.{3 * at}", (outs, ins)) for at, (ins, outs) in enumerate(widths)]
    return sum(lines, arrays)


ALEXNET = Task(
    id="3_005",
    name="AlexNet",
    family="model",
    source=forward_text(alexnet),
    sizes={
        "cpu": uniform(x=(3, 3, 99, 99)) + alexnet_layers((16, 40, 60, 60, 40), 40 * 2 * 2, 100, 70),
        "kb": uniform(x=(1024, 3, 224, 224)) + alexnet_layers((96, 256, 384, 384, 256), 256 * 6 * 6, 4096, 1000),
        "kb_v0": normal(x=(10, 3, 224, 224)) + alexnet_layers((96, 256, 384, 384, 256), 256 * 6 * 6, 4096, 1000),
    },
    precision="tf32",
    notes=(
        "Nearly insensitive: initial weights shrink the signal and no norm restores it; the logits of two images lie "
        "within 1e-2, though not within 1e-4.",
    ),
)


def vgg_task(task_id: str, name: str, depths: tuple[int, ...]) -> Task:
    """A VGG whose blocks hold `depths` convolutions."""
    full = vgg_layers(depths, (64, 128, 256, 512, 512), 512 * 7 * 7, 4096, 1000)
    return Task(
        id=task_id,
        name=name,
        family="model",
        source=forward_text(vgg).replace("(2, 2, 3, 3, 3)", str(depths)),
        sizes={
            "cpu": uniform(x=(3, 3, 65, 65)) + vgg_layers(depths, (8, 16, 30, 60, 60), 60 * 2 * 2, 100, 70),
            "kb": uniform(x=(10, 3, 224, 224)) + full,
            "kb_v0": normal(x=(10, 3, 224, 224)) + full,
        },
        precision="tf32",
        notes=(
            "Insensitive: initial weights shrink the signal and no norm restores it; the logits of two images agree "
            "within 1e-4.",
        ),
    )


VGG_16 = vgg_task("3_011", "VGG16", depths=(2, 2, 3, 3, 3))
VGG_19 = vgg_task("3_012", "VGG19", depths=(2, 2, 4, 4, 4))
