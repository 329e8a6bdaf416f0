"""A task: one workload to be made faster, as plain data that can be pickled, printed in a prompt and stored."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Array:
    """One input or parameter of a task.

    `init` names the initial distribution: "uniform(0,1)", "normal(0,1)", "integers(0,10)", "constant(1)", or a
    product of such terms with "*", where "scalar:" before a term draws one number for the whole array.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    init: str = "uniform(0,1)"


@dataclasses.dataclass(frozen=True)
class Task:
    """One workload. `source` is the text of `def forward(nn, ...)`, written against the `nn` namespace alone."""

    id: str  # "2_083" = KernelBench level 2 problem 83; generated and user tasks have names of their own
    name: str
    family: str  # elementwise, rowwise, reduction, scan, matmul, loss, chain ...
    source: str
    sizes: Mapping[str, tuple[Array, ...]]  # size name -> inputs, then parameters, in the order of `forward`
    precision: str = "fp32"  # class a program must keep: fp32, tf32 or half
    cases: tuple[str, ...] | None = None  # correctness cases that make sense here; None = all
    degenerate: str | None = None  # why the output says nothing about the input, if so
    collapses: str | None = None  # how the algebra shrinks, if so
    notes: tuple[str, ...] = ()
