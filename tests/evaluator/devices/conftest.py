"""Builds one-launch plans from kernel text and runs them; objects are cached for the session only."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from evaluator.devices import cpu
from evaluator.program.plan import (
    Argument,
    Buffer,
    FloatArgument,
    IntArgument,
    Launch,
    Module,
    Plan,
    ScalarArgument,
    View,
)
from evaluator.records import Limits, Outcome, ProgramFault


@pytest.fixture(scope="session", autouse=True)
def object_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@dataclasses.dataclass(frozen=True)
class Out:
    """An output of a launch: shape and dtype of a buffer that the kernel writes."""

    shape: tuple[int, ...]
    dtype: str = "float32"


def dtype_name(array: np.ndarray) -> str:
    return "bool" if array.dtype == np.bool_ else array.dtype.name


def as_argument(value: object) -> Argument:
    match value:
        case bool() | int():
            return IntArgument(int(value))
        case float():
            return FloatArgument(value)
        case np.generic():
            return ScalarArgument(value.dtype.name, value.item())
    raise TypeError(value)


def build_plan(
    source: str,
    arguments: Sequence[object],
    *,
    kernel: str = "k",
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (256,),
    shared: int = 0,
    options: tuple[str, ...] = (),
    repeat: int = 1,
) -> tuple[Plan, list[np.ndarray]]:
    """A plan of one launch. Arrays become inputs, `Out` become outputs, everything else scalars."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    outs = [a for a in arguments if isinstance(a, Out)]
    buffers = [Buffer(f"x{i}", "input", dtype_name(a), a.shape) for i, a in enumerate(arrays)]
    buffers += [Buffer(f"y{i}", "temporary", o.dtype, o.shape) for i, o in enumerate(outs)]
    views = [View(i, 0, buffer.shape) for i, buffer in enumerate(buffers)]
    next_in, next_out = iter(views[: len(arrays)]), iter(views[len(arrays) :])
    packed: list[Argument] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            packed.append(next(next_in))
        elif isinstance(argument, Out):
            packed.append(next(next_out))
        else:
            packed.append(as_argument(argument))
    three = [(*extent, 1, 1)[:3] for extent in (tuple(grid), tuple(block))]
    step = Launch(0, kernel, three[0], three[1], shared, tuple(packed), line=7)
    outputs = tuple(views[len(arrays) :])
    plan = Plan(tuple(buffers), (Module(source, options, (kernel,)),), (step,) * repeat, outputs)
    return plan, arrays


@pytest.fixture
def out() -> type[Out]:
    return Out


@pytest.fixture
def plan_of() -> Callable[..., tuple[Plan, list[np.ndarray]]]:
    return build_plan


@pytest.fixture
def run_kernel() -> Callable[..., cpu.RunReport]:
    """run_kernel(source, arguments, ...) -> RunReport; keywords of build_plan, and order, seed, guard, threads."""

    def run(source, arguments, *, order="forward", seed=0, guard="right", threads=1, limits=None, **launch):
        limits = limits or Limits()
        plan, inputs = build_plan(source, arguments, **launch)
        with cpu.Session(cpu.compile(plan, limits), limits, threads=threads) as session:
            return session.run(inputs, order=order, seed=seed, guard=guard)

    return run


@pytest.fixture
def outputs_of(run_kernel) -> Callable[..., tuple[np.ndarray, ...]]:
    """Outputs of one forward run, after checking that nothing else was found wrong."""

    def run(source, arguments, **launch):
        report = run_kernel(source, arguments, **launch)
        assert report.unwritten == (0,) * len(report.outputs)
        assert report.modified == ()
        assert not report.state_changed
        return report.outputs

    return run


@pytest.fixture
def fault_of(run_kernel) -> Callable[..., tuple[Outcome, str]]:
    """Outcome and message of the fault that a kernel must end in."""

    def run(source, arguments, **launch):
        with pytest.raises(ProgramFault) as caught:
            run_kernel(source, arguments, **launch)
        return caught.value.fault.outcome, caught.value.fault.message

    return run
