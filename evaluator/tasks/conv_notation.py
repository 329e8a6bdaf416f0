"""How convolutions are written down: what a layer reads and writes at a size, and the arrays of a task made of one."""

import dataclasses
from collections.abc import Callable

from evaluator.tasks.notation import Shape, forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


@dataclasses.dataclass(frozen=True)
class Size:
    """What a layer reads and writes at one size; it is 1-D, 2-D or 3-D as `x` is."""

    x: Shape  # batch, channels, then one to three lengths
    channels: int  # of the output
    kernel: int | Shape = 3  # lengths of an edge; a number where all are the same
    groups: int = 1  # of channels

    @property
    def window(self) -> Shape:
        """Lengths of the kernel's edges."""
        return (self.kernel,) * (len(self.x) - 2) if isinstance(self.kernel, int) else self.kernel


Weights = Callable[[Size], tuple[Array, ...]]
Parameters = Callable[[int], tuple[Array, ...]]  # channels of the output -> arrays


def conv(size: Size, name: str = "conv", bias: bool = True) -> tuple[Array, ...]:
    """Weight and bias of a convolution called `name`."""
    return layer(name, (size.channels, size.x[1] // size.groups, *size.window), bias)


def conv_transpose(size: Size, name: str = "conv_transpose", bias: bool = True) -> tuple[Array, ...]:
    """Weight and bias of a transposed convolution called `name`."""
    return layer(name, (size.x[1], size.channels // size.groups, *size.window), bias, outputs=size.channels)


def none(channels: int) -> tuple[Array, ...]:
    """No arrays: of a model without parameters of its own, or without a norm."""
    return ()


def sizes(
    weights: Weights,
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


def convolution(
    task_id: str,
    name: str,
    forward: Callable,
    arrays: dict[str, tuple[Array, ...]],
    *,
    version0: Callable | None = None,
    notes: tuple[str, ...] = (),
) -> Task:
    """A level 1 task whose reference is `forward`, or `version0` at the benchmark's first version.

    PyTorch allows TF32 in convolutions, though not in matrix products; so do these tasks.
    """
    return Task(
        id=task_id,
        name=name,
        family="convolution",
        source=forward_text(forward),
        sizes=arrays,
        precision="tf32",
        notes=notes,
        sources_at={"kb_v0": forward_text(version0)} if version0 else {},
    )
