"""How convolutions are written down: what a layer reads and writes at a size, and the parts that a model is made of."""

import dataclasses
from collections.abc import Callable

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import Shape, forward_text, layer, normal, parameter, uniform
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


VERSION0_2D = Size((128, 3, 32, 32), 16)  # of most 2-D chains in the benchmark's first version

Part = Callable[[Size], tuple[Array, ...]]  # parameters of a layer, or of the model's own, at a size


def conv(size: Size, name: str = "conv", bias: bool = True) -> tuple[Array, ...]:
    """Weight and bias of a convolution called `name`."""
    return layer(name, (size.channels, size.x[1] // size.groups, *size.window), bias)


def conv_transpose(size: Size, name: str = "conv_transpose", bias: bool = True) -> tuple[Array, ...]:
    """Weight and bias of a transposed convolution called `name`."""
    return layer(name, (size.x[1], size.channels // size.groups, *size.window), bias, outputs=size.channels)


def norm(name: str) -> Part:
    """Weight and bias of a norm over the output's channels."""
    return lambda size: affine(name, size.channels)


def per_channel(*names: str, init: str = "normal(0,1)") -> Part:
    """Parameters of the model's own, of one number for each channel of the output."""
    return lambda size: tuple(parameter(name, (size.channels, *[1] * len(size.window)), init) for name in names)


def single(name: str, shape: Shape = (), init: str = "normal(0,1)") -> Part:
    """A parameter of the model's own, of one number whatever the size; `shape` is made of ones."""
    return lambda size: (parameter(name, shape, init),)


def sizes(
    *parts: Part, cpu: Size, kb: Size, kb_v0: Size, parts_v0: tuple[Part, ...] | None = None
) -> dict[str, tuple[Array, ...]]:
    """Arrays at each size: x, then those of each of `parts`, or of `parts_v0` where the first version has others."""

    def arrays(x: tuple[Array, ...], size: Size, parts: tuple[Part, ...]) -> tuple[Array, ...]:
        return x + tuple(array for part in parts for array in part(size))

    return {
        "cpu": arrays(uniform(x=cpu.x), cpu, parts),
        "kb": arrays(uniform(x=kb.x), kb, parts),
        "kb_v0": arrays(normal(x=kb_v0.x), kb_v0, parts_v0 or parts),
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
