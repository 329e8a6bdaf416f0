"""A plan as the flat list of 64-bit words that the runner executes; `csrc/emulator/tape.hpp` reads it."""

import math
from collections.abc import Sequence

import numpy as np

from evaluator.devices.layout import regions
from evaluator.devices.poison import numpy_dtype
from evaluator.devices.signature import Value, pack
from evaluator.program.dtypes import ITEM_BYTES
from evaluator.program.plan import Attention, Convolution, Copy, Fill, Launch, Matmul, Plan, View

_MAGIC = 0x3145504154554D45
_LAUNCH, _FILL, _COPY, _MATMUL, _CONVOLUTION, _ATTENTION = 1, 2, 3, 4, 5, 6
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
            case Convolution():
                words += _convolution(plan, step)
            case Attention():
                words += _attention(plan, step)
    return np.array(words, dtype=np.uint64).tobytes()


def _place(plan: Plan, view: View) -> tuple[int, int]:
    return view.buffer, view.offset * numpy_dtype(plan.dtype(view)).itemsize


def _arguments(plan: Plan, arguments: tuple[View | Value, ...]) -> list[int]:
    words = [len(arguments)]
    for argument in arguments:
        words += [1, *_place(plan, argument)] if isinstance(argument, View) else [0, argument.word, 0]
    return words


def _matmul(plan: Plan, step: Matmul) -> list[int]:
    """An operand's element (row, column) lies at row * down + column * across of its matrix."""
    (m, k), n = step.a.shape[-2:], step.out.shape[-1]
    if step.transpose_a:
        m, k = k, m
    batch = math.prod(step.out.shape[:-2])
    strides = [0 if len(shape) == 2 else shape[-2] * shape[-1] for shape in (step.a.shape, step.b.shape)]
    across_a = (1, m) if step.transpose_a else (k, 1)
    across_b = (1, k) if step.transpose_b else (n, 1)
    places = [*_place(plan, step.a), *_place(plan, step.b), *_place(plan, step.out)]
    return [_MATMUL, _NUMBER_TYPES[plan.dtype(step.a)], *places, batch, m, n, k, *strides, *across_a, *across_b]


def _convolution(plan: Plan, step: Convolution) -> list[int]:
    """As one over three dimensions: those that are missing have length and window 1."""
    missing = 5 - len(step.x.shape)

    def whole(lengths: Sequence[int], value: int) -> list[int]:
        return [value] * missing + list(lengths)

    places = [*_place(plan, step.x), *_place(plan, step.weight), *_place(plan, step.out)]
    counts = [step.x.shape[0], step.x.shape[1], step.out.shape[1], step.groups, int(step.transposed)]
    sizes = [*whole(step.x.shape[2:], 1), *whole(step.weight.shape[2:], 1), *whole(step.out.shape[2:], 1)]
    moves = [*whole(step.stride, 1), *whole(step.padding, 0), *whole(step.dilation, 1)]
    return [_CONVOLUTION, *places, *counts, *sizes, *moves]


def _attention(plan: Plan, step: Attention) -> list[int]:
    places = [word for view in (step.query, step.key, step.value, step.out) for word in _place(plan, view)]
    heads, (tokens, width) = math.prod(step.query.shape[:-2]), step.query.shape[-2:]
    return [_ATTENTION, *places, heads, tokens, *step.value.shape[-2:], width, int(step.causal)]
