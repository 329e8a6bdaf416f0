"""A task: one workload to be made faster, as plain data that can be pickled, printed in a prompt and stored."""

import dataclasses
from collections.abc import Mapping

# Element types that a task's arrays may have.
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64")  # fmt: skip

# Correctness cases in the order in which they are tried; `evaluator.judge.cases` says what each does.
CASES = ("plain", "negated", "large", "heavy_tailed", "one_changed", "structured", "shifted", "permuted", "small",
         "integers", "centred", "sparse", "alike")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Array:
    """One input or parameter of a task.

    `init` names the initial distribution: "uniform(0,1)", "normal(0,1)", "integers(0,10)", "constant(1)", or a
    product of such terms with "*", where "scalar:" before a term draws one number for the whole array. "triu", "tril",
    "symmetric", "softmax" or "sign" around it, as in "triu(uniform(0,1))", names the structure that an input has.
    """

    name: str  # as the reference calls it; a dot is an underscore in the arguments of `forward`
    shape: tuple[int, ...]
    dtype: str = "float32"
    init: str = "uniform(0,1)"
    parameter: bool = False  # a weight of the model, as against an input; parameters follow the inputs

    @property
    def argument(self) -> str:
        """Name of this array among the arguments of `forward`."""
        return self.name.replace(".", "_")


@dataclasses.dataclass(frozen=True)
class Task:
    """One workload. `source` is the text of `def forward(nn, ...)`, written against the `nn` namespace alone.

    Where `reference` is "torch", it is that of a PyTorch file whose `Model` is run (`evaluator.nn.torch_module`).
    """

    id: str  # "2_083" = KernelBench level 2 problem 83; generated and user tasks have names of their own
    name: str
    family: str  # elementwise, rowwise, reduction, scan, matmul, loss, chain ...
    source: str
    sizes: Mapping[str, tuple[Array, ...]]  # size name -> inputs, then parameters, in the order of `forward`
    precision: str = "fp32"  # class a program must keep: fp32, tf32 or half
    cases: tuple[str, ...] | None = None  # out of CASES, those that make sense here; None = all
    degenerate: str | None = None  # why the output says nothing about the input, if so
    degenerate_sizes: tuple[str, ...] | None = None  # sizes at which it does not; None = all
    collapses: str | None = None  # how the algebra shrinks, if so
    library_steps: bool = True  # whether programs may use cp.matmul and evaluator.lib
    notes: tuple[str, ...] = ()
    sources_at: Mapping[str, str] = dataclasses.field(default_factory=dict)  # size -> `source` where it differs there
    reference: str = "nn"  # what `source` is: "nn" or "torch"

    def source_at(self, size: str) -> str:
        """Text of the reference at `size`: the benchmark's versions write some tasks in different ways."""
        return self.sources_at.get(size, self.source)

    def degenerate_at(self, size: str) -> bool:
        """Whether the output at `size` says nothing about the input."""
        return bool(self.degenerate) and (self.degenerate_sizes is None or size in self.degenerate_sizes)

    def arrays_at(self, size: str) -> tuple[Array, ...]:
        """Inputs, then parameters, at `size`; `KeyError` naming the sizes there are."""
        if size not in self.sizes:
            raise KeyError(f"task {self.id} has no size {size!r}; it has {', '.join(self.sizes)}")
        return self.sizes[size]
