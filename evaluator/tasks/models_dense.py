"""DenseNet, its dense block and its transition, KernelBench level 3."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


def transition(nn, x, transition_0_weight, transition_0_bias, transition_2_weight):
    x = nn.relu(nn.batch_norm(x, transition_0_weight, transition_0_bias, eps=1e-5))
    return nn.avg_pool2d(nn.conv2d(x, transition_2_weight), 2, stride=2)


def dense_block(nn, x, *weights):
    left = iter(weights)
    for _ in range(6):
        out = nn.relu(nn.batch_norm(x, next(left), next(left), eps=1e-5))
        out = nn.conv2d(out, next(left), padding=1)
        x = nn.cat((x, out), dim=1)
    return x


def densenet(nn, x, *weights):
    depths = (6, 12, 24, 16)
    before = 3 + 3 * sum(depths)
    dense, other = iter(weights[:before]), iter(weights[before:])  # transitions follow all of the dense blocks

    def norm_relu(x, left):
        return nn.relu(nn.batch_norm(x, next(left), next(left), eps=1e-5))

    x = norm_relu(nn.conv2d(x, next(dense), stride=2, padding=3), dense)
    x = nn.max_pool2d(x, 3, stride=2, padding=1)
    for block, depth in enumerate(depths):
        if block > 0:
            x = nn.conv2d(norm_relu(x, other), next(other))
            x = nn.avg_pool2d(x, 2, stride=2)
        for _ in range(depth):
            out = nn.conv2d(norm_relu(x, dense), next(dense), padding=1)
            x = nn.cat((x, out), dim=1)
    x = nn.adaptive_avg_pool2d(norm_relu(x, other), (1, 1))
    return nn.linear(nn.flatten(x, start_dim=1), next(other), next(other))


def norm_conv(norm: str, conv: str, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """A batch norm and the convolution without a bias after it."""
    return affine(norm, shape[1]) + layer(conv, shape, bias=False)


def transition_layers(prefix: str, inputs: int, outputs: int) -> tuple[Array, ...]:
    return norm_conv(f"{prefix}transition.0", f"{prefix}transition.2", (outputs, inputs, 1, 1))


def block_layers(prefix: str, depth: int, inputs: int, growth: int) -> tuple[Array, ...]:
    """`depth` layers; each is given `growth` channels more than the one before."""
    shapes = [(growth, inputs + at * growth, 3, 3) for at in range(depth)]
    named = [(f"{prefix}layers.{at}", shape) for at, shape in enumerate(shapes)]
    return sum((norm_conv(f"{name}.0", f"{name}.2", shape) for name, shape in named), ())


def densenet_layers(depths: tuple[int, ...], first: int, growth: int, classes: int) -> tuple[Array, ...]:
    """Dense blocks, then the transitions between them, which halve the channels, then the classifier."""
    blocks: tuple[Array, ...] = layer("features.0", (first, 3, 7, 7), bias=False) + affine("features.1", first)
    transitions: tuple[Array, ...] = ()
    channels = first
    for at, depth in enumerate(depths):
        blocks += block_layers(f"dense_blocks.{at}.", depth, channels, growth)
        channels += depth * growth
        if at < len(depths) - 1:
            transitions += transition_layers(f"transition_layers.{at}.", channels, channels // 2)
            channels //= 2
    return blocks + transitions + affine("final_bn", channels) + layer("classifier", (classes, channels))


TRANSITION = Task(
    id="3_013",
    name="DenseNet121TransitionLayer",
    family="model",
    source=forward_text(transition),
    sizes={
        "cpu": uniform(x=(3, 12, 44, 50)) + transition_layers("", 12, 20),
        "kb": uniform(x=(128, 32, 256, 256)) + transition_layers("", 32, 64),
        "kb_v0": normal(x=(10, 32, 224, 224)) + transition_layers("", 32, 64),
    },
    precision="tf32",
    notes=("A 1x1 convolution and an average commute: with the average first, a quarter of the products is left.",),
)

DENSE_BLOCK = Task(
    id="3_014",
    name="DenseNet121DenseBlock",
    family="model",
    source=forward_text(dense_block),
    sizes={
        "cpu": uniform(x=(2, 10, 30, 33)) + block_layers("", 6, 10, 9),
        "kb": uniform(x=(10, 32, 224, 224)) + block_layers("", 6, 32, 32),
        "kb_v0": normal(x=(10, 32, 224, 224)) + block_layers("", 6, 32, 32),
    },
    precision="tf32",
)


def densenet_task(task_id: str, name: str, depths: tuple[int, ...]) -> Task:
    """A DenseNet whose blocks hold `depths` layers."""
    full = densenet_layers(depths, first=64, growth=32, classes=10)
    return Task(
        id=task_id,
        name=name,
        family="model",
        source=forward_text(densenet).replace("(6, 12, 24, 16)", str(depths)),
        sizes={
            "cpu": uniform(x=(3, 3, 67, 67)) + densenet_layers(depths, first=10, growth=4, classes=10),
            "kb": uniform(x=(10, 3, 224, 224)) + full,
            "kb_v0": normal(x=(10, 3, 224, 224)) + full,
        },
        precision="tf32",
    )


DENSENET_121 = densenet_task("3_015", "DenseNet121", depths=(6, 12, 24, 16))
DENSENET_201 = densenet_task("3_016", "DenseNet201", depths=(6, 12, 48, 32))
