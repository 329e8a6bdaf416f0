"""Runs a task's reference text against a namespace, for its values or for the shapes of its outputs."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol


class Array(Protocol):
    """What is asked of one array of a task: its shape and dtype."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


class Task(Protocol):
    """What is asked of a task: its text and arrays at a size (`evaluator.tasks.task.Task` fits)."""

    @property
    def id(self) -> str: ...
    def source_at(self, size: str) -> str: ...
    def arrays_at(self, size: str) -> Sequence[Any]: ...


def compile_forward(source: str, filename: str = "<task>") -> Callable:
    """The function `forward(nn, ...)` that `source` defines; `ValueError` where it defines none or is no Python."""
    scope: dict[str, Any] = {}
    try:
        exec(compile(source, filename, "exec"), scope)
    except SyntaxError as error:
        raise ValueError(f"the reference is not valid Python: {error.msg}, line {error.lineno}") from error
    forward = scope.get("forward")
    if not callable(forward):
        raise ValueError("the reference defines no `forward`; write `def forward(nn, x, ...):`")
    return forward


def run(source: str, nn: ModuleType, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs of the reference on `arrays` (inputs, then parameters), always as a tuple.

    The arrays go through `nn.operand`, which gives them the operators of the namespace.
    """
    outputs = compile_forward(source)(nn, *map(nn.operand, arrays))
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def abstract(task: Task, size: str) -> list[tuple[tuple[int, ...], str]]:
    """Shape and dtype of every output of `task` at `size`; allocates nothing, so large sizes cost no more.

    Indices are int64 as in PyTorch, in a process without 64-bit mode too. A reference that cannot be traced raises
    `ValueError` naming the task.
    """
    import jax  # a second of start-up that readers of the catalog alone do not pay

    from evaluator.nn import jax_nn

    with jax.enable_x64(True):
        arrays = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in task.arrays_at(size)]
        forward = compile_forward(task.source_at(size))
        try:
            outputs = jax.eval_shape(lambda *operands: forward(jax_nn, *operands), *arrays)
        except Exception as error:  # whatever the text raises is a finding about the task
            raise ValueError(
                f"the reference of task {task.id} fails on its own shapes at size {size}: {error}"
            ) from error
    return [(tuple(output.shape), str(output.dtype)) for output in jax.tree.leaves(outputs)]
