"""Queues the steps of a compiled plan on a device's stream: kernels and memory by the driver, library steps by CuPy."""

from collections.abc import Iterator, Sequence

import cupy as cp

from evaluator import _core
from evaluator.devices.cuda import layout
from evaluator.devices.cuda.compiled_plan import CompiledPlan
from evaluator.devices.signature import pack
from evaluator.nn.cupy_nn import cublas, cudnn_plans, operand, scaled_dot_product_attention
from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.launch_limits import MAX_SHARED_BYTES
from evaluator.program.plan import Attention, Convolution, Copy, Fill, Launch, LibraryStep, Matmul, Step, View
from evaluator.records import Outcome, ProgramFault, Rung

_NOT_FOUND = 500  # CUresult
_LITERALS = ("$str", "__unnamed_")  # texts for printf and assert, which the driver need not know by name
_USUAL_SHARED_BYTES = 48 * 1024  # a kernel gets more dynamic shared memory only if it asks


class Executable:
    """The loaded modules of one compiled plan. `queue` runs it once on the buffers at the given addresses."""

    def __init__(self, device: _core.CudaDevice, compiled: CompiledPlan):
        """Raises CudaError where the driver does not take a cubin."""
        self._device, self._compiled, self._plan = device, compiled, compiled.plan
        self._workspace = cp.cuda.MemoryPool()  # of library steps; a recorded graph goes on using what it took
        self._modules = [_core.CudaModule(device, module.cubin) for module in compiled.modules]
        self._functions = {
            (number, kernel): self._modules[number].function(lowered)
            for number, module in enumerate(compiled.modules)
            for kernel, lowered in module.lowered.items()
        }
        for step in self._plan.steps:
            if isinstance(step, Launch) and step.shared_bytes > 0:
                self._allow_shared(step)

    def globals(self) -> list[cp.ndarray]:
        """The writable global variables of the modules, as bytes: what a program could keep from run to run."""
        found = []
        for number, module in enumerate(self._compiled.modules):
            for name in module.globals:
                try:
                    address, nbytes = self._modules[number].global_variable(name)
                except _core.CudaError as error:
                    if error.args[1] != _NOT_FOUND or not name.startswith(_LITERALS):
                        raise
                    continue
                found.append(layout.bits(address, nbytes, "uint8", self._modules[number]))
        return found

    def queue(self, addresses: Sequence[int], timer: _core.CudaTimer | None = None) -> None:
        """Queues every step once; `addresses` are those of the plan's buffers. Can be captured into a graph.

        With `timer` each step is timed for itself, which a recording cannot be. Raises ProgramFault `unsupported` for a
        step that no library takes.
        """
        arguments = iter(self._compiled.arguments)
        for step in self._plan.steps:
            if timer is not None:
                timer.start()
            self._queue_step(step, arguments, addresses)
            if timer is not None:
                timer.stop()

    def _queue_step(self, step: Step, arguments: Iterator[Sequence[View | bytes]], addresses: Sequence[int]) -> None:
        match step:
            case Launch():
                self._launch(step, next(arguments), addresses)
            case Fill():
                dtype = self._plan.dtype(step.view)
                pattern = pack(step.value, dtype).to_bytes(8, "little")[: ITEM_BYTES[dtype]]
                self._device.fill(self._address(step.view, addresses), pattern, step.view.size)
            case Copy():
                nbytes = step.source.size * ITEM_BYTES[self._plan.dtype(step.source)]
                target, source = self._address(step.target, addresses), self._address(step.source, addresses)
                self._device.copy(target, source, nbytes)
            case _:
                with cp.cuda.using_allocator(self._workspace.malloc):
                    self._call_library(step, addresses)

    def _call_library(self, step: LibraryStep, addresses: Sequence[int]) -> None:
        if step.out.size == 0:
            return
        match step:
            case Matmul():
                a, b, out = (self._array(view, addresses) for view in (step.a, step.b, step.out))
                a, b = a.swapaxes(-1, -2) if step.transpose_a else a, b.swapaxes(-1, -2) if step.transpose_b else b
                cublas.matmul(a, b, out=out, dtype=self._plan.dtype(step.a))
            case Convolution():
                x, weight, out = (self._array(view, addresses) for view in (step.x, step.weight, step.out))
                shapes = (x.shape, weight.shape, out.shape)
                moves = (step.stride, step.padding, step.dilation)
                try:
                    cudnn_plans.convolve(cudnn_plans.Geometry(*shapes, *moves, step.transposed), x, weight, out)
                except cudnn_plans.NoPlan as error:  # the program's choice, and no task's
                    raise ProgramFault(Outcome.UNSUPPORTED, Rung.LAUNCH, str(error), step.line) from error
            case Attention():
                views = (step.query, step.key, step.value)
                query, key, value = (operand(self._array(view, addresses)) for view in views)
                found = scaled_dot_product_attention(query, key, value, step.causal)
                self._array(step.out, addresses)[...] = found

    def _launch(self, step: Launch, arguments: Sequence[View | bytes], addresses: Sequence[int]) -> None:
        words = [
            self._address(argument, addresses).to_bytes(8, "little") if isinstance(argument, View) else argument
            for argument in arguments
        ]
        self._device.launch(self._functions[step.module, step.kernel], step.grid, step.block, step.shared_bytes, words)

    def _allow_shared(self, step: Launch) -> None:
        module = self._compiled.modules[step.module]
        static = module.reports[step.kernel].shared_bytes
        if static + step.shared_bytes > _USUAL_SHARED_BYTES:
            most = min(self._device.shared_bytes, MAX_SHARED_BYTES) - static
            self._modules[step.module].allow_shared(module.lowered[step.kernel], most)

    def _address(self, view: View, addresses: Sequence[int]) -> int:
        return addresses[view.buffer] + view.offset * ITEM_BYTES[self._plan.dtype(view)]

    def _array(self, view: View, addresses: Sequence[int]) -> cp.ndarray:
        dtype = layout.numpy_dtype(self._plan.dtype(view))
        return layout.array(self._address(view, addresses), view.shape, dtype, None)
