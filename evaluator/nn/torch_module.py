"""A PyTorch file as a reference: its `Model`, run on arrays that are handed in. Needs PyTorch, and runs on the CPU.

The file has the form of KernelBench's: a class `Model(nn.Module)`, `get_inputs()`, `get_init_inputs()`. It is
trusted, as the reference of its task; programs never run in the process that runs it.
"""

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

_NAMES = ("Model", "get_inputs", "get_init_inputs")


class TorchModule:
    """The model of one file, in training mode as the benchmark leaves it."""

    def __init__(self, text: str, seed: int = 0):
        """Runs the file and draws the model at `seed`. ValueError: a name of the form is missing."""
        self._scope: dict[str, Any] = {"__name__": "task"}
        exec(compile(text, "<task>", "exec"), self._scope)
        if missing := [name for name in _NAMES if not callable(self._scope.get(name))]:
            raise ValueError(f"the file defines no {missing[0]}; a PyTorch file defines {', '.join(_NAMES)}")
        self.redraw(seed)

    def redraw(self, seed: int) -> None:
        """Draws the model's parameters anew."""
        torch.manual_seed(seed)
        single = self._scope["Model"](*self._scope["get_init_inputs"]())
        # The float64 twin holds the same buffers; parameters are handed in at every call.
        self._models = {torch.float32: single, torch.float64: copy.deepcopy(single).double()}
        self._single = single

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Inputs by the names of forward's arguments; Python numbers are arrays of no dimension."""
        torch.manual_seed(seed)
        values = self._scope["get_inputs"]()
        names = list(inspect.signature(self._single.forward).parameters)
        if len(names) < len(values):
            raise ValueError(f"get_inputs gives {len(values)} inputs, and Model.forward takes {len(names)}: {names}")
        return {name: _array(value) for name, value in zip(names, values, strict=False)}

    def parameters(self) -> dict[str, np.ndarray]:
        """Parameters by their dotted names."""
        return {name: _array(value) for name, value in self._single.named_parameters()}

    def convolves(self) -> bool:
        """Whether a layer is a convolution, which PyTorch computes in TF32 on a GPU."""
        return any(isinstance(layer, torch.nn.modules.conv._ConvNd) for layer in self._single.modules())

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Outputs on inputs, then parameters, at the precision of the arrays. Nothing is kept between calls."""
        values = [torch.from_numpy(np.array(array, order="C")) for array in arrays]
        double = any(value.dtype == torch.float64 for value in values)
        dtype = torch.float64 if double else torch.float32
        model = self._models[dtype]
        names = [name for name, _ in model.named_parameters()]
        inputs = values[: len(values) - len(names)]
        state = dict(zip(names, values[len(inputs) :], strict=True))
        state |= {name: buffer.clone() for name, buffer in model.named_buffers()}
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)  # of what forward itself makes
        try:
            with torch.no_grad():
                outputs = torch.func.functional_call(model, state, tuple(inputs))
        finally:
            torch.set_default_dtype(before)
        return [_array(output) for output in (outputs if isinstance(outputs, tuple | list) else (outputs,))]


def _array(value: Any) -> np.ndarray:
    if isinstance(value, int | float):
        return np.array(value, np.float32)
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"expected a tensor or a number, saw {type(value).__name__}")
    return value.detach().contiguous().numpy()
