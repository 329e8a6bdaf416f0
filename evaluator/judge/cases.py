"""Correctness cases: transforms of a task's own distribution that expose what plain draws hide.

A program sees shapes only, so it cannot know which case it is run on. Every case but `plain` also moves arrays that a
task draws as a constant (norm weights of one, biases of zero): else leaving them out would pass.
Where a task promises a structure (a triangle, symmetry, probabilities, labels of 1 and -1), the numbers of which it is
made are transformed, then it is made again: a program may rely on what the task promises.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evaluator.tasks.arrays import NUMPY, Source, draw, parse_init
from evaluator.tasks.structure import restored
from evaluator.tasks.task import CASES, Array, Task

SORTED = 2**26  # elements at most, in the case `permuted`

# Bits 8 to 15 of a float32 that ends nearly half a spacing above, or below, what its nearest number of eleven bits is,
# and of eight: rounded to either, all such numbers move the same way.
DOWNWARDS, UPWARDS = 0x6F00, 0x9000

Arrays = list[Any]  # of NumPy, or of CuPy, whose functions NumPy's dispatch to
Draws = Any  # what `Source.generator` gives
Transform = Callable[[Arrays, Draws], Arrays]


def negated(arrays: Arrays, rng: Draws) -> Arrays:
    """First array negated, signs of all others at random: an identity in place of relu, a lost sign."""
    return _each(arrays, lambda x: -x, lambda x: _signs(x, rng))


def centred(arrays: Arrays, rng: Draws) -> Arrays:
    """First array 3 z whatever the task draws, signs of the others at random: limits on both sides, a sign a block."""
    return _each(arrays, lambda x: 3 * _normal(x, rng), lambda x: _signs(x, rng))


def sparse(arrays: Arrays, rng: Draws) -> Arrays:
    """First array zero but for one element in a thousand, 10 z, or 20 + 10 z where that is above 2: outputs that one
    element makes or that none does. Exponentials of all the zeros beside a maximum near ten would add up to a tenth of
    it in equal parts, of which an honest float32 sum from left to right loses as much as half precision does.

    The first and the last element count as much as all others together: a sum over millions shows their absence, too,
    and what a coarse format makes of them.
    """

    def thin(x: Any) -> Any:
        kept = rng.random(x.shape, dtype=np.float32) < 0.001
        kept.reshape(-1)[int(rng.integers(0, x.size, ()))] = True
        thinned = (kept * (10 * _normal(x, rng))).astype(x.dtype)
        thinned += 20 * (thinned > 2).astype(x.dtype)
        ends = _ending_in(np.full(1, math.sqrt(100 + 0.23 * x.size), np.float32), DOWNWARDS)[0]
        thinned.reshape(-1)[0] = thinned.reshape(-1)[-1] = x.dtype.type(ends)
        return thinned

    return _first(arrays, thin)


def alike(arrays: Arrays, rng: Draws) -> Arrays:
    """Integers up to 300 in every array: two of them are equal here and there, and differences are whole."""

    def whole(x: Any) -> Any:
        return rng.integers(-300, 301, size=x.shape).astype(x.dtype)

    return _each(arrays, whole, whole)


def shifted(arrays: Arrays, rng: Draws) -> Arrays:
    """First array plus twice its largest magnitude: assumed zero mean, variances by difference of large sums."""
    return _first(arrays, lambda x: x + x.dtype.type(2 * _largest(x)))


def large(arrays: Arrays, rng: Draws) -> Arrays:
    """First array times 1,000: exponentials without the maximum taken out, half precision that overflows.

    Of two inputs and more, the first ends in bits that coarse formats round one way.
    """
    return _first(arrays, lambda x: x * x.dtype.type(1000))


def small(arrays: Arrays, rng: Draws) -> Arrays:
    """First array times 0.001, signs at random: zeros inside a tolerance, a wrong epsilon, too short a series.

    Other inputs end in bits that coarse formats round one way, and every other of these is negated.
    """
    return _first(arrays, lambda x: _signs(x, rng) * x.dtype.type(0.001))


def heavy_tailed(arrays: Arrays, rng: Draws) -> Arrays:
    """Factors exp(2 z), at most 1,000: a few elements carry each sum, so a partial reduction is far off."""
    return _first(
        arrays,
        lambda x: x * np.minimum(np.exp(2 * rng.standard_normal(x.shape, dtype=np.float32)), 1000).astype(x.dtype),
    )


def one_changed(arrays: Arrays, rng: Draws) -> Arrays:
    """One element made 50 times the largest, anywhere, another the largest negated: part of the input not looked at.

    A sample of it finds neither, and all other elements are as the task draws them: positive, as a rule.
    """

    def change(x: Any) -> Any:
        flat, largest = x.reshape(-1).copy(), _largest(x)
        for value in (-largest, 50 * largest):
            flat[int(rng.integers(0, flat.size, ()))] = x.dtype.type(value)
        return flat.reshape(x.shape)

    return _first(arrays, change)


def permuted(arrays: Arrays, rng: Draws) -> Arrays:
    """Sorted along a random axis, upwards or downwards: a sum over the first part of an axis is then biased.

    Of an array of more than SORTED elements only a slice at a random place is, since sorting takes longer than all else
    that is done with a case.
    """

    def reorder(x: Any) -> Any:
        if x.ndim == 0:
            return x
        axis, upwards = int(rng.integers(0, x.ndim, ())), int(rng.integers(0, 2, ()))
        x = x.copy()
        some = x[_slice(x.shape, axis, rng)]
        ordered = np.sort(some, axis=axis)
        some[...] = ordered if upwards else np.flip(ordered, axis=axis)
        return x

    return _first(arrays, reorder)


def _slice(shape: tuple[int, ...], axis: int, rng: Draws) -> tuple[slice, ...]:
    """All of an array of at most SORTED elements, else part of its longest other axis."""
    taken = [slice(None)] * len(shape)
    others = [i for i in range(len(shape)) if i != axis]
    if math.prod(shape) > SORTED and others:
        longest = max(others, key=lambda i: shape[i])
        kept = max(1, SORTED * shape[longest] // math.prod(shape))
        begin = int(rng.integers(0, shape[longest] - kept + 1, ()))
        taken[longest] = slice(begin, begin + kept)
    return tuple(taken)


def structured(arrays: Arrays, rng: Draws) -> Arrays:
    """Rows alternate between one-hot and the constant 1/2: ties, zero variance, a single term in each sum."""

    def build(x: Any) -> Any:
        if x.size == 0:
            return x
        rows = np.zeros_like(x).reshape(-1, x.shape[-1] if x.ndim else 1)
        places = np.arange(rows.shape[1], like=rows)
        rows[...] = places[None] == rng.integers(0, rows.shape[1], (rows.shape[0], 1))
        rows[1::2] = 0.5
        return rows.reshape(x.shape)

    return _first(arrays, build)


def integers(arrays: Arrays, rng: Draws) -> Arrays:
    """Integers up to 4,095 in the first array, up to 4 in the others: linear tasks must then be exact.

    4,095 needs twelve bits, so half (11) and TF32 (11) lose it while float32 keeps every sum below 2**24. Every other
    row of the first array has one element of nineteen bits among ones, for operands that are split or cut off.
    """

    def whole(x: Any, top: int) -> Any:
        return rng.integers(-top, top + 1, size=x.shape).astype(x.dtype)

    def first(x: Any) -> Any:
        x = whole(x, 4095)
        if x.ndim == 0 or np.finfo(x.dtype).nmant < np.finfo(np.float32).nmant:
            return x
        rows = x.reshape(-1, x.shape[-1])[int(rng.integers(0, 2, ())) :: 2]
        rows[...] = np.sign(rows)
        places = rng.integers(0, x.shape[-1], (len(rows),))
        rows[np.arange(len(rows), like=places), places] = rng.integers(2**18, 2**19, (len(rows),)).astype(x.dtype)
        return x

    return _each(arrays, first, lambda x: whole(x, 4))


# In the order in which they are tried: what fails most programs comes first.
TRANSFORMS: dict[str, Transform] = {
    "negated": negated,
    "large": large,
    "heavy_tailed": heavy_tailed,
    "one_changed": one_changed,
    "structured": structured,
    "shifted": shifted,
    "permuted": permuted,
    "small": small,
    "integers": integers,
    "centred": centred,
    "sparse": sparse,
    "alike": alike,
}


def cases_of(task: Task) -> tuple[str, ...]:
    """Names of the cases that make sense for a task, `plain` always among them. Unknown names raise ValueError."""
    if task.cases is None:
        return CASES
    unknown = sorted(set(task.cases) - set(CASES))
    if unknown:
        raise ValueError(f"task {task.id}: seen the cases {unknown}, expected names out of {list(CASES)}")
    return tuple(case for case in CASES if case == "plain" or case in task.cases)


def inputs_for(task: Task, size: str, case: str, seed: int, source: Source = NUMPY) -> Arrays:
    """Inputs then parameters of one case, contiguous, dtypes as in the task, on the device of `source`."""
    arrays = draw(task, size, seed, case, source, structured=case == "plain")
    if case == "plain":
        return arrays
    specs = task.arrays_at(size)
    rng = source.generator(seed, 1 + CASES.index(case), 0)
    moved = [_vary_constant(x, spec, rng) for x, spec in zip(arrays, specs, strict=True)]
    transformed = _show_rounding(TRANSFORMS[case](moved, rng), specs, case)
    return [
        source.xp.ascontiguousarray(restored(x, parse_init(spec.init).structure), dtype=spec.dtype).reshape(spec.shape)
        for x, spec in zip(transformed, specs, strict=True)
    ]


def _show_rounding(arrays: Arrays, specs: Sequence[Array], case: str) -> Arrays:
    """Inputs that are rounded one way by coarse formats: errors that take either sign average out in a loss.

    In `large` that is the first input, in `small` all others, each where it outweighs the rest: downwards and upwards
    by turns, the latter negated, so that errors of a difference add up, and what a constant does to both of its sides.
    Of a single input nothing is, since an honest sum of many such numbers would itself lose the same bits of each: it
    needs other inputs beside it, whose bits are random.
    """
    inputs = [i for i, spec in enumerate(specs) if spec.dtype == "float32" and not spec.parameter]
    if len(inputs) < 2 or case not in ("large", "small"):
        return arrays
    changed = list(arrays)
    for number, i in enumerate(inputs[:1] if case == "large" else inputs[1:]):
        changed[i] = _ending_in(-arrays[i], UPWARDS) if number % 2 else _ending_in(arrays[i], DOWNWARDS)
    return changed


def _ending_in(x: Any, ending: int) -> Any:
    """`x` with other bits 8 to 15; zeros stay."""
    bits = x.view(np.uint32) & np.uint32(0xFFFF00FF)
    bits |= np.uint32(ending)
    bits *= x != 0
    return bits.view(np.float32)


def _vary_constant(x: Any, spec: Array, rng: Draws) -> Any:
    """Constants in [0.5 c, 1.5 c + 0.25]: positive stays positive (a variance), zero becomes small and positive."""
    if not spec.init.startswith("constant") or not _floating(x):
        return x
    factor, term = 0.5 + rng.random(x.shape, dtype=np.float32), rng.random(x.shape, dtype=np.float32)
    return (x * factor + 0.25 * term).astype(x.dtype)


def _floating(x: Any) -> bool:
    return np.issubdtype(x.dtype, np.floating)


def _normal(x: Any, rng: Draws) -> Any:
    return rng.standard_normal(x.shape, dtype=np.float32).astype(x.dtype)


def _signs(x: Any, rng: Draws) -> Any:
    return x * (2 * rng.integers(0, 2, x.shape) - 1).astype(x.dtype)


def _largest(x: Any) -> float:
    return (float(np.max(np.abs(x))) if x.size else 0.0) or 1.0


def _first(arrays: Sequence[Any], change: Callable[[Any], Any]) -> Arrays:
    """`change` on the first floating array that has elements; masks and targets stay as drawn."""
    return _each(arrays, change, lambda x: x)


def _each(arrays: Sequence[Any], first: Callable[[Any], Any], rest: Callable[[Any], Any]) -> Arrays:
    changed: Arrays = []
    seen_first = False
    for x in arrays:
        if not _floating(x) or x.size == 0:
            changed.append(x)
        else:
            changed.append(rest(x) if seen_first else first(x))
            seen_first = True
    return changed
