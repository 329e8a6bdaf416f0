"""How the chains on a 2-D convolution are written down: a layer, parameters before it and a norm after it."""

import dataclasses

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import Shape, layer, normal, parameter, uniform
from evaluator.tasks.task import Array


@dataclasses.dataclass(frozen=True)
class Image:
    """What a chain's layer reads and writes at one size; kernels are squares."""

    x: Shape  # batch, channels, height, width
    channels: int  # of the output
    kernel: int = 3  # length of an edge


VERSION0 = Image((128, 3, 32, 32), 16)  # of most chains in the benchmark's first version


@dataclasses.dataclass(frozen=True)
class Weights:
    """Which parameters a model has, in their order: its own, those of the convolution, those of norms."""

    own: tuple[str, ...] = ()  # one number for each output channel
    own_init: str = "normal(0,1)"
    norms: tuple[str, ...] = ()
    transposed: bool = False

    def arrays(self, image: Image) -> tuple[Array, ...]:
        """The parameters at the size of `image`."""
        outputs, inputs, window = image.channels, image.x[1], (image.kernel, image.kernel)
        own = tuple(parameter(name, (outputs, 1, 1), self.own_init) for name in self.own)
        if self.transposed:
            conv = layer("conv_transpose", (inputs, outputs, *window), outputs=outputs)
        else:
            conv = layer("conv", (outputs, inputs, *window))
        return own + conv + tuple(array for name in self.norms for array in affine(name, outputs))


def sizes(weights: Weights, *, cpu: Image, kb: Image, kb_v0: Image = VERSION0) -> dict[str, tuple[Array, ...]]:
    """Arrays at each size: x, then the parameters of the model."""
    return {
        "cpu": uniform(x=cpu.x) + weights.arrays(cpu),
        "kb": uniform(x=kb.x) + weights.arrays(kb),
        "kb_v0": normal(x=kb_v0.x) + weights.arrays(kb_v0),
    }
