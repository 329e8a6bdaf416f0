"""Ten distributions of inputs for the search, none of them a case of the judge, on streams of their own."""

from collections.abc import Callable

import numpy as np

from evaluator.tasks.arrays import draw, parse_init
from evaluator.tasks.structure import restored
from evaluator.tasks.task import Array, Task

Generator = np.random.Generator
Shape = tuple[int, ...]


def scaled(rng: Generator, shape: Shape) -> np.ndarray:
    """Normal, of one magnitude for the whole array, from 1e-4 to 1e2."""
    return _normal(rng, shape) * np.float32(10 ** (6 * rng.random() - 4))


def decades(rng: Generator, shape: Shape) -> np.ndarray:
    """Either sign, magnitudes from 0.01 to 100, every decade alike."""
    signs = 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
    return signs * np.exp2(rng.random(shape, dtype=np.float32) * 13.2877 - 6.6439)


def quantised(rng: Generator, shape: Shape) -> np.ndarray:
    """Halves from -1 to 1: nothing but ties."""
    return rng.integers(-2, 3, shape, dtype=np.int8) / np.float32(2)


def sparse(rng: Generator, shape: Shape) -> np.ndarray:
    """Zeros but for one element in ten, or in up to a million; never zeros alone, whose outputs have no scale."""
    x = 10 * _normal(rng, shape) * (rng.random(shape, dtype=np.float32) < 10 ** (-1 - 5 * rng.random()))
    return _with_one(x, 10.0, rng)


def ramp(rng: Generator, shape: Shape) -> np.ndarray:
    """Rises with the flat index, a little noise on it; or falls."""
    ends = 4.0 if rng.integers(0, 2) else -4.0
    size = int(np.prod(shape))
    return np.linspace(-ends, ends, size, dtype=np.float32).reshape(shape) + 0.01 * _normal(rng, shape)


def offset(rng: Generator, shape: Shape) -> np.ndarray:
    """Each row around a mean of its own between 5 and 25."""
    return _normal(rng, shape) + 20 * rng.random(_rows(shape), dtype=np.float32) + 5


def row_scales(rng: Generator, shape: Shape) -> np.ndarray:
    """Each row of a magnitude of its own, from 1e-4 to 1e3."""
    return _normal(rng, shape) * np.float32(10) ** (7 * rng.random(_rows(shape), dtype=np.float32) - 4)


def plateaus(rng: Generator, shape: Shape) -> np.ndarray:
    """Constant for some elements at a time, a few or thousands, with one outlier."""
    size, longest = int(np.prod(shape)), int(10 ** (1 + 3 * rng.random()))
    lengths = rng.integers(1, longest, 2 * size // longest + 2)
    levels = np.repeat(rng.standard_normal(lengths.size, dtype=np.float32), lengths)
    return _with_one(np.resize(levels, size).reshape(shape), 30.0, rng)


def whole(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(-300, 301, shape, dtype=np.int16).astype(np.float32)


OWN = "own"  # what the task itself draws
WHOLE = "whole"  # integers throughout: linear tasks are then exact, and equality is due
DISTRIBUTIONS: dict[str, Callable[[Generator, Shape], np.ndarray] | None] = {
    OWN: None,
    "scaled": scaled,
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
    An input that has a structure (a triangle, probabilities) is given it again.
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
    if spec.parameter:
        return drawn * (0.5 + 1.5 * rng.random(dtype=np.float32))
    return restored(distribution(rng, spec.shape).astype(drawn.dtype), parse_init(spec.init).structure)


def _normal(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def _with_one(x: np.ndarray, value: float, rng: Generator) -> np.ndarray:
    """`x` with `value` in some place, where it has any."""
    flat = x.reshape(-1)
    if flat.size:
        flat[rng.integers(0, flat.size)] = value
    return flat.reshape(x.shape)


def _rows(shape: Shape) -> Shape:
    return (*shape[:-1], 1) if shape else ()
