"""How a level 2 chain is written down: a layer and what follows it, one function of a few lines."""

from collections.abc import Callable

from evaluator.tasks.notation import forward_text
from evaluator.tasks.task import Array, Task


def chain(
    task_id: str,
    name: str,
    forward: Callable,
    arrays: dict[str, tuple[Array, ...]],
    *,
    version0: Callable | None = None,
    precision: str = "tf32",
    degenerate: str | None = None,
    degenerate_sizes: tuple[str, ...] | None = None,
    collapses: str | None = None,
    notes: tuple[str, ...] = (),
) -> Task:
    """A chain whose reference is `forward`, or `version0` at the benchmark's first version.

    `precision`: that of a convolution; "fp32" where the layer is linear.
    """
    return Task(
        id=task_id,
        name=name,
        family="chain",
        source=forward_text(forward),
        sizes=arrays,
        precision=precision,
        degenerate=degenerate,
        degenerate_sizes=degenerate_sizes,
        collapses=collapses,
        notes=notes,
        sources_at={"kb_v0": forward_text(version0)} if version0 else {},
    )
