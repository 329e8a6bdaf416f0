"""A U-Net whose activations are softmaxes over rows, KernelBench level 3."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


def unet_softmax(nn, x, *weights):
    left = iter(weights)

    def double_conv(x):
        for _ in range(2):
            x = nn.conv2d(x, next(left), next(left), padding=1)
            x = nn.softmax(nn.batch_norm(x, next(left), next(left), eps=1e-5), dim=-1)
        return x

    encoded = []
    for _ in range(4):
        encoded.append(double_conv(x))
        x = nn.max_pool2d(encoded[-1], 2, stride=2)
    x = double_conv(x)
    for skipped in reversed(encoded):
        x = nn.conv_transpose2d(x, next(left), next(left), stride=2)
        x = double_conv(nn.cat((x, skipped), dim=1))
    return nn.conv2d(x, next(left), next(left))


def double_conv_layers(prefix: str, inputs: int, outputs: int) -> tuple[Array, ...]:
    name = f"{prefix}.double_conv"
    return (
        *layer(f"{name}.0", (outputs, inputs, 3, 3)),
        *affine(f"{name}.1", outputs),
        *layer(f"{name}.3", (outputs, outputs, 3, 3)),
        *affine(f"{name}.4", outputs),
    )


def unet_layers(inputs: int, outputs: int, features: int) -> tuple[Array, ...]:
    """`features` channels at the first level, twice as many at each below."""
    widths = [features * 2**level for level in range(5)]
    arrays = double_conv_layers("encoder1", inputs, features)
    for level in range(1, 5):
        name = f"encoder{level + 1}" if level < 4 else "bottleneck"
        arrays += double_conv_layers(name, widths[level - 1], widths[level])
    for level in range(4, 0, -1):
        below, here = widths[level], widths[level - 1]
        arrays += layer(f"upconv{level}", (below, here, 2, 2), outputs=here)
        arrays += double_conv_layers(f"decoder{level}", 2 * here, here)
    return arrays + layer("final_conv", (outputs, features, 1, 1))


UNET_SOFTMAX = Task(
    id="3_045",
    name="UNetSoftmax",
    family="model",
    source=forward_text(unet_softmax),
    sizes={
        "cpu": uniform(x=(2, 5, 32, 80)) + unet_layers(5, 4, features=6),
        "kb": uniform(x=(8, 8, 64, 512)) + unet_layers(8, 4, features=64),
        "kb_v0": normal(x=(8, 8, 64, 512)) + unet_layers(8, 4, features=64),
    },
    precision="tf32",
    notes=(
        "Ill-conditioned: a softmax leaves values that differ little, and the norm after it stretches them again; a "
        "change of the input by 1e-6 moves outputs by more than 1e-4.",
        "A batch norm takes the mean out again, so the biases of the convolutions before one change no output.",
    ),
)
