"""A call's arguments, put in the order of `forward` and held against what a program was verified for; its results."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluator.calling.source import Source, Unverified
from evaluator.devices.poison import numpy_dtype
from evaluator.program.plan import Plan
from evaluator.tasks.task import DTYPES, Array

Form = tuple[tuple[int, ...], np.dtype]  # of an array: shape, dtype


def in_order(source: Source, positional: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Arguments as `forward` takes them: inputs, then parameters. TypeError where some are missing or too many."""
    names = source.names
    if len(positional) == len(names) and not named:
        return list(positional)
    if len(positional) > len(names):
        raise TypeError(f"{source.name} takes {len(names)} arrays ({', '.join(names)}), got {len(positional)}")
    given = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name not in names:
            raise TypeError(f"{source.name} has no argument {name!r}; it takes {', '.join(names)}")
        if name in given:
            raise TypeError(f"{source.name}: argument {name!r} is given twice")
        given[name] = value
    if missing := [name for name in names if name not in given]:
        raise TypeError(f"{source.name} takes {len(names)} arrays; {', '.join(missing)} missing")
    return [given[name] for name in names]


def arrays_of(source: Source, forms: Sequence[Form]) -> tuple[Array, ...]:
    """The task's arrays with the call's shapes and dtypes.

    Raises Unverified where those are not the verified ones, TypeError for a dtype that no program takes.
    """
    found = tuple(
        dataclasses.replace(array, shape=tuple(shape), dtype=dtype.name)
        for array, (shape, dtype) in zip(source.arrays, forms, strict=True)
    )
    for array in found:
        if array.dtype not in DTYPES:
            raise TypeError(f"{source.name}: argument {array.argument!r} is of {array.dtype}; no program takes that")
    if source.verified is not None:
        for seen, wanted in zip(found, source.verified, strict=True):
            if (seen.shape, seen.dtype) != (wanted.shape, wanted.dtype):
                raise Unverified(
                    f"{source.name} was verified with {wanted.argument} of {_spelt(wanted)}, and is called with"
                    f" {_spelt(seen)}; pass allow_unverified=True to call it all the same"
                )
    return found


def _spelt(array: Array) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def results_of(plan: Plan) -> tuple[Form, ...]:
    """Shapes and dtypes of what a plan returns."""
    return tuple((view.shape, numpy_dtype(plan.dtype(view))) for view in plan.outputs)
