"""A level 2 chain on one linear layer, written down by what differs from one to the next."""

from collections.abc import Callable
from typing import Any

from evaluator.tasks.chain import chain
from evaluator.tasks.norms import affine
from evaluator.tasks.notation import layer, normal, parameter, uniform
from evaluator.tasks.task import Array, Task

Lengths = tuple[int, int, int]
"""Rows, inputs of the layer, outputs of the layer."""

SMALL: Lengths = (100, 250, 200)
LARGE: Lengths = (1024, 8192, 8192)


def linear_chain(
    task_id: str,
    name: str,
    function: Callable,
    layer_name: str,
    version0: Lengths,
    *,
    kb: Lengths = LARGE,
    cpu: Lengths = SMALL,
    own: Callable[[int], tuple[Array, ...]] = lambda outputs: (),
    norm: str | None = None,
    at_version0: Callable | None = None,
    **flags: Any,
) -> Task:
    """`own(outputs)`: parameters of the model's own, before those of its layers. `norm`: name of one with an affine.

    `at_version0`: the function where version 0 writes the chain in another way.
    """

    def arrays(draw: Callable, lengths: Lengths) -> tuple[Array, ...]:
        rows, inputs, outputs = lengths
        scale = affine(norm, outputs) if norm else ()
        return (*draw(x=(rows, inputs)), *own(outputs), *layer(layer_name, (outputs, inputs)), *scale)

    return chain(
        task_id,
        name,
        function,
        {"cpu": arrays(uniform, cpu), "kb": arrays(uniform, kb), "kb_v0": arrays(normal, version0)},
        version0=at_version0,
        precision="fp32",
        **flags,
    )


def per_output(name: str) -> Callable[[int], tuple[Array, ...]]:
    """One number for each output of the layer, drawn from the standard normal distribution."""
    return lambda outputs: (parameter(name, (outputs,), "normal(0,1)"),)


def single(name: str, init: str, shape: tuple[int, ...] = (1,)) -> Callable[[int], tuple[Array, ...]]:
    """One number."""
    return lambda outputs: (parameter(name, shape, init),)
