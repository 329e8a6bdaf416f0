"""Inputs and parameters of a task, drawn so that they depend on the seed and the array's place alone."""

import dataclasses
import re
import zlib
from typing import Any, Protocol

import numpy as np

from evaluator.tasks.structure import DRAWN
from evaluator.tasks.task import Array, Task

_STRUCTURE = re.compile(rf"({'|'.join(DRAWN)})\((.*)\)")
_TERM = re.compile(r"(scalar:)?(uniform|normal|integers|constant)\(([^()]*)\)")
_ARGUMENTS = {"uniform": 2, "normal": 2, "integers": 2, "constant": 1}


@dataclasses.dataclass(frozen=True)
class Term:
    """One factor of a distribution."""

    kind: str  # uniform, normal, integers, constant
    numbers: tuple[float, ...]  # low and high (exclusive), mean and deviation, or the constant
    scalar: bool  # one number for the whole array


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Product of the terms, and what is made of it."""

    structure: str | None  # a key of `structure.DRAWN`
    terms: tuple[Term, ...]


def parse_init(text: str) -> Distribution:
    """Meaning of "uniform(0,1)*scalar:uniform(0,1)" or "triu(normal(0,1))"; `ValueError` shows the grammar."""
    match = _STRUCTURE.fullmatch(text.strip())
    structure, product = match.groups() if match else (None, text)
    return Distribution(structure, _terms(product, text))


def _terms(product: str, text: str) -> tuple[Term, ...]:
    terms = []
    for part in product.split("*"):
        match = _TERM.fullmatch(part.strip())
        try:
            if match is None:
                raise ValueError(part)
            scalar, kind, inside = match.groups()
            numbers = tuple(float(number) for number in inside.split(","))
            if len(numbers) != _ARGUMENTS[kind]:
                raise ValueError(part)
        except ValueError:
            raise ValueError(
                f"cannot read {part.strip()!r} in the distribution {text!r}; write uniform(low,high), "
                "normal(mean,deviation), integers(low,high), constant(value), or a product of these with '*', "
                f"'scalar:' before a factor drawn once; around it may stand one of {', '.join(DRAWN)}, with brackets"
            ) from None
        terms.append(Term(kind, numbers, scalar is not None))
    return tuple(terms)


class Source(Protocol):
    """Where random numbers come from and arrays live: NumPy here, CuPy on a GPU (`evaluator.devices.cuda.draws`)."""

    @property
    def xp(self) -> Any:
        """The array module."""
        ...

    def generator(self, seed: int, index: int, block: int) -> Any:
        """A new stream with the methods of `numpy.random.Generator` that are used here and in the cases."""
        ...


class NumpySource:
    """Philox streams; equal arguments give equal arrays on every machine."""

    @property
    def xp(self) -> Any:
        return np

    def generator(self, seed: int, index: int, block: int) -> np.random.Generator:
        key = np.array([seed, index], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, block], dtype=np.uint64)))


NUMPY = NumpySource()


def draw(
    task: Task, size: str, seed: int, case: str = "plain", source: Source = NUMPY, structured: bool = True
) -> list:
    """Inputs, then parameters, of `task` at `size`.

    Array number i comes from a stream of its own, keyed by (seed, i); `case` selects another part of that stream, so
    that two cases share no numbers. `structured=False`: the numbers of which triangles, probabilities and the like are
    made. Raises KeyError for an unknown size, ValueError for a bad distribution.
    """
    arrays = task.arrays_at(size)
    return [draw_array(array, seed, index, case, source, structured) for index, array in enumerate(arrays)]


def draw_array(
    array: Array, seed: int, index: int, case: str = "plain", source: Source = NUMPY, structured: bool = True
) -> Any:
    """One array of a task: shape and dtype of `array`, contents from the stream of (seed, index, case)."""
    xp = source.xp
    generator = source.generator(seed, index, 0 if case == "plain" else 1 + zlib.crc32(case.encode()))
    dtype = np.dtype(array.dtype)
    distribution, product = parse_init(array.init), None
    for term in distribution.terms:
        drawn = _draw_term(xp, term, () if term.scalar else array.shape, dtype, generator)
        product = drawn if product is None else product * drawn
    # `ascontiguousarray` makes a vector of a scalar, hence the last shape.
    drawn = xp.asarray(product, dtype)
    if structured and distribution.structure:
        drawn = xp.ascontiguousarray(DRAWN[distribution.structure](drawn))
    return drawn if drawn.shape == array.shape else xp.full(array.shape, drawn).reshape(array.shape)


def _draw_term(xp: Any, term: Term, shape: tuple[int, ...], dtype: np.dtype, generator: Any) -> Any:
    first, second = (*term.numbers, 0.0)[:2]
    if term.kind == "integers":
        return xp.asarray(generator.integers(int(first), int(second), shape)).astype(dtype)
    if term.kind == "constant":
        return xp.full(shape, first, dtype)
    # Drawn in float32 whatever the dtype: that is what the benchmark's tensors hold, and half the time of float64.
    if term.kind == "uniform":
        return _moved(xp.asarray(generator.random(shape, dtype=np.float32)), second - first, first, dtype)
    return _moved(xp.asarray(generator.standard_normal(shape, dtype=np.float32)), second, first, dtype)


def _moved(unit: Any, factor: float, term: float, dtype: np.dtype) -> Any:
    """`unit * factor + term`, in place: arrays may be gigabytes."""
    if factor != 1:
        unit *= np.float32(factor)
    if term != 0:
        unit += np.float32(term)
    return unit.astype(dtype, copy=False)
