"""A plan as the flat list of 64-bit words that the runner executes; `csrc/emulator/tape.hpp` reads it."""

import math
from collections.abc import Sequence

import numpy as np

from evaluator.devices.layout import regions
from evaluator.devices.poison import numpy_dtype
from evaluator.devices.signature import Value, pack
from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.plan import Copy, Fill, Launch, Matmul, Plan, View

_MAGIC = 0x3145504154554D45
_LAUNCH, _FILL, _COPY, _MATMUL = 1, 2, 3, 4
_NUMBER_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 3}


def write(
    plan: Plan, kernel_numbers: dict[tuple[int, str], int], arguments: Sequence[tuple[View | Value, ...]]
) -> bytes:
    """The tape. `arguments` holds, for each launch in order, its checked arguments."""
    words = [_MAGIC, len(plan.buffers), len(kernel_numbers), len(plan.steps)]
    for region in regions(plan):
        words += [region.file_offset, region.region_bytes, region.nbytes]
    remaining = iter(arguments)
    for step in plan.steps:
        match step:
            case Launch():
                number = kernel_numbers[step.module, step.kernel]
                words += [_LAUNCH, number, *step.grid, *step.block, step.shared_bytes]
                words += _arguments(plan, next(remaining))
            case Fill():
                dtype = plan.dtype(step.view)
                words += [_FILL, *_place(plan, step.view), step.view.size, ITEM_BYTES[dtype], pack(step.value, dtype)]
            case Copy():
                nbytes = step.source.size * ITEM_BYTES[plan.dtype(step.source)]
                words += [_COPY, *_place(plan, step.source), *_place(plan, step.target), nbytes]
            case Matmul():
                words += _matmul(plan, step)
    return np.array(words, dtype=np.uint64).tobytes()


def _place(plan: Plan, view: View) -> tuple[int, int]:
    return view.buffer, view.offset * numpy_dtype(plan.dtype(view)).itemsize


def _arguments(plan: Plan, arguments: tuple[View | Value, ...]) -> list[int]:
    words = [len(arguments)]
    for argument in arguments:
        words += [1, *_place(plan, argument)] if isinstance(argument, View) else [0, argument.word, 0]
    return words


def _matmul(plan: Plan, step: Matmul) -> list[int]:
    a, b, out = step.a.shape, step.b.shape, step.out.shape
    m, k, n = a[-2], a[-1], b[-1]
    batch = math.prod(out[:-2])
    strides = [0 if len(shape) == 2 else shape[-2] * shape[-1] for shape in (a, b)]
    places = [*_place(plan, step.a), *_place(plan, step.b), *_place(plan, step.out)]
    return [_MATMUL, _NUMBER_TYPES[plan.dtype(step.a)], *places, batch, m, n, k, *strides]
