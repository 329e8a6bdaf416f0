"""How the chains on a 3-D convolution are written down: a layer, parameters before it and a norm after it."""

import dataclasses
from collections.abc import Callable

from evaluator.tasks.notation import Shape, layer, normal, parameter, uniform
from evaluator.tasks.task import Array


@dataclasses.dataclass(frozen=True)
class Size:
    """What a chain's layer reads and writes at one size; kernels are cubes."""

    x: Shape  # batch, channels, depth, height, width
    channels: int  # of the output
    kernel: int = 3  # length of an edge


Parameters = Callable[[int], tuple[Array, ...]]  # channels of the output -> arrays


def none(channels: int) -> tuple[Array, ...]:
    """No arrays: of a chain without parameters of its own, or without a norm."""
    return ()


def per_channel(*names: str) -> Parameters:
    """Parameters of the model's own, of one number for each channel."""
    return lambda channels: tuple(parameter(name, (channels, 1, 1, 1), "normal(0,1)") for name in names)


def conv(size: Size) -> tuple[Array, ...]:
    """Weight and bias of a layer called `conv`."""
    return layer("conv", (size.channels, size.x[1], *(size.kernel,) * 3))


def conv_transpose(size: Size) -> tuple[Array, ...]:
    """Weight and bias of a layer called `conv_transpose`."""
    return layer("conv_transpose", (size.x[1], size.channels, *(size.kernel,) * 3), outputs=size.channels)


def sizes(
    weights: Callable[[Size], tuple[Array, ...]],
    *,
    cpu: Size,
    kb: Size,
    kb_v0: Size,
    own: Parameters = none,
    norm: Parameters = none,
    own_v0: Parameters | None = None,
    norm_v0: Parameters | None = None,
) -> dict[str, tuple[Array, ...]]:
    """Arrays at each size: x, the model's `own` parameters, the layer's `weights`, those of the `norm`.

    `own_v0` and `norm_v0` stand for models whose first version has others.
    """

    def arrays(x: tuple[Array, ...], size: Size, before: Parameters, after: Parameters) -> tuple[Array, ...]:
        return x + before(size.channels) + weights(size) + after(size.channels)

    return {
        "cpu": arrays(uniform(x=cpu.x), cpu, own, norm),
        "kb": arrays(uniform(x=kb.x), kb, own, norm),
        "kb_v0": arrays(normal(x=kb_v0.x), kb_v0, own_v0 or own, norm_v0 or norm),
    }
