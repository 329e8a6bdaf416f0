"""Ten distributions of inputs for the search, none of them a case of the judge, on streams of their own."""

from collections.abc import Callable

import numpy as np

from evaluator.tasks.arrays import draw
from evaluator.tasks.task import Array, Task

Generator = np.random.Generator
Shape = tuple[int, ...]


def gaussian(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def decades(rng: Generator, shape: Shape) -> np.ndarray:
    """Either sign, magnitudes from 0.01 to 100, every decade alike."""
    signs = 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
    return signs * np.exp2(rng.random(shape, dtype=np.float32) * 13.2877 - 6.6439)


def quantised(rng: Generator, shape: Shape) -> np.ndarray:
    """Halves from -1 to 1: nothing but ties."""
    return rng.integers(-2, 3, shape, dtype=np.int8) / np.float32(2)


def sparse(rng: Generator, shape: Shape) -> np.ndarray:
    """One element in twenty, the rest zeros."""
    return 10 * gaussian(rng, shape) * (rng.random(shape, dtype=np.float32) < 0.05)


def ramp(rng: Generator, shape: Shape) -> np.ndarray:
    """Rises with the flat index, a little noise on it; or falls."""
    ends = 4.0 if rng.integers(0, 2) else -4.0
    size = int(np.prod(shape))
    return np.linspace(-ends, ends, size, dtype=np.float32).reshape(shape) + 0.01 * gaussian(rng, shape)


def offset(rng: Generator, shape: Shape) -> np.ndarray:
    """Each row around a mean of its own between 5 and 25."""
    return gaussian(rng, shape) + 20 * rng.random(_rows(shape), dtype=np.float32) + 5


def row_scales(rng: Generator, shape: Shape) -> np.ndarray:
    """Each row of a magnitude of its own, from 1e-4 to 1e3."""
    return gaussian(rng, shape) * np.float32(10) ** (7 * rng.random(_rows(shape), dtype=np.float32) - 4)


def plateaus(rng: Generator, shape: Shape) -> np.ndarray:
    """Constant for a random number of elements at a time, with one outlier."""
    size = int(np.prod(shape))
    lengths = rng.integers(1, 400, size // 100 + 1)
    levels = np.repeat(rng.standard_normal(lengths.size, dtype=np.float32), lengths)
    flat = np.resize(levels, size)
    if size:
        flat[rng.integers(0, size)] = 30.0
    return flat.reshape(shape)


def whole(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(-300, 301, shape, dtype=np.int16).astype(np.float32)


OWN = "own"  # what the task itself draws
WHOLE = "whole"  # integers throughout: linear tasks are then exact, and equality is due
DISTRIBUTIONS: dict[str, Callable[[Generator, Shape], np.ndarray] | None] = {
    OWN: None,
    "gaussian": gaussian,
    "decades": decades,
    "quantised": quantised,
    "sparse": sparse,
    "ramp": ramp,
    "offset": offset,
    "row_scales": row_scales,
    "plateaus": plateaus,
    WHOLE: whole,
}


def inputs(task: Task, size: str, name: str, seed: int) -> list[np.ndarray]:
    """Inputs then parameters of a task. Floating inputs follow the distribution `name`; weights stay near their own.

    Arrays that a task draws as constants vary by themselves, so that what ignores them shows; integers stay as drawn.
    """
    rng = np.random.Generator(np.random.SFC64([seed, 77]))
    drawn = draw(task, size, seed, case=f"mutants {name}")
    arrays = [_array(name, spec, x, rng) for spec, x in zip(task.arrays_at(size), drawn, strict=True)]
    return [
        np.ascontiguousarray(x, dtype=spec.dtype).reshape(spec.shape)
        for x, spec in zip(arrays, task.arrays_at(size), strict=True)
    ]


def _array(name: str, spec: Array, drawn: np.ndarray, rng: Generator) -> np.ndarray:
    if drawn.dtype.kind != "f":
        return drawn
    if spec.init.startswith("constant"):
        return drawn * (0.4 + rng.random(spec.shape, dtype=np.float32)) + 0.3 * rng.random(spec.shape, dtype=np.float32)
    distribution = DISTRIBUTIONS[name]
    if distribution is None:
        return drawn
    if name == WHOLE and spec.parameter:
        return rng.integers(-3, 4, spec.shape).astype(np.float32)
    return drawn * (0.5 + 1.5 * rng.random(dtype=np.float32)) if spec.parameter else distribution(rng, spec.shape)


def _rows(shape: Shape) -> Shape:
    return (*shape[:-1], 1) if shape else ()
