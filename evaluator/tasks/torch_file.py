"""Tasks from a PyTorch file of KernelBench's form: `Model`, `get_inputs`, `get_init_inputs`.

Arrays are the inputs, then the parameters. Their distributions are recognised from draws at many seeds, so that the
judge draws its own numbers, of any case and seed, without PyTorch.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.tasks.task import Array, Task
from evaluator.tasks.user import TaskFileError

_MOST_DRAWS = 32
_FEWEST_DRAWS = 16  # a number that is drawn once for an array shows over several
_ENOUGH = 4096  # numbers of an array from which its distribution is told
_MOST_NUMBERS = 1 << 16  # of one draw that are looked at
_HEAVY = 10_000_000  # numbers drawn in all after which two draws have to do


def load(path: Path, constants: Mapping[str, Any]) -> Task:
    """The task of the file at `path`, `constants` in place of what the file assigns to these names.

    TaskFileError: a file that cannot be used, PyTorch missing, or a distribution that is not recognised.
    """
    if not path.is_file():
        raise TaskFileError(f"{path}: no such file; give the path of a PyTorch file that defines Model")
    text = with_constants(path, path.read_text(encoding="utf-8"), constants)
    try:
        from evaluator.nn.torch_module import TorchModule
    except ImportError as error:
        raise TaskFileError(f"{path}: a task by path needs PyTorch: install the extra `torch`") from error
    try:
        module = TorchModule(text)
        draws = _draws(module)
        _require_determined(module)
    except Exception as error:  # whatever the user's code raises is a finding about the file
        raise TaskFileError(f"{path}: {type(error).__name__}: {error}") from error
    arrays = tuple(_recognised(path, name, each, name in module.parameters()) for name, each in draws.items())
    stem = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    precision = "tf32" if module.convolves() else "fp32"
    return Task(stem, stem, "user", text, {"cpu": arrays}, precision, reference="torch")


def with_constants(path: Path, text: str, constants: Mapping[str, Any]) -> str:
    """`text` with other values for names that it assigns at its top level. TaskFileError: it assigns no such name."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise TaskFileError(f"{path}: SyntaxError: {error.msg}, line {error.lineno}") from error
    places = assigned(tree)
    if unknown := sorted(set(constants) - set(places)):
        raise TaskFileError(f"{path}: the file assigns no {unknown[0]!r}; its constants are {', '.join(places)}")
    lines = text.encode().splitlines()  # columns of a syntax tree are bytes
    for name in sorted(constants, key=lambda name: (places[name].lineno, places[name].col_offset), reverse=True):
        first, last = places[name].lineno - 1, (places[name].end_lineno or 0) - 1
        before, after = lines[first][: places[name].col_offset], lines[last][places[name].end_col_offset :]
        lines[first : last + 1] = [before + repr(constants[name]).encode() + after]
    return b"\n".join(lines).decode() + "\n"


def assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Name -> expression of what a file assigns at its top level, `height, width = 64, 64` included."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name):
            found[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = zip(target.elts, value.elts, strict=False)
            found |= {name.id: each for name, each in pairs if isinstance(name, ast.Name)}
    return found


def _draws(module: Any) -> dict[str, list[np.ndarray]]:
    """Arrays by name, inputs first, at seeds 0, 1, ... until each has enough numbers."""
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(_MOST_DRAWS):
        module.redraw(seed)
        for name, array in (module.inputs(1000 + seed) | module.parameters()).items():
            found.setdefault(name, []).append(array)
        drawn = [array[0].size * len(array) for array in found.values()]
        if (seed >= _FEWEST_DRAWS and min(drawn, default=_ENOUGH) >= _ENOUGH) or (seed and sum(drawn) > _HEAVY):
            break
    module.redraw(0)
    return found


def _require_determined(module: Any) -> None:
    """That outputs follow from the arrays alone: `run` seeds nothing, so a model that draws gives other ones."""
    arrays = [*module.inputs(0).values(), *module.parameters().values()]
    first, second = module.run(arrays), module.run(arrays)
    if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, second, strict=True)):
        raise ValueError("two calls of Model give different outputs: draw no numbers in forward, make them inputs")


def _recognised(path: Path, name: str, draws: list[np.ndarray], parameter: bool) -> Array:
    init = recognise(draws)
    if init is None:
        raise TaskFileError(
            f"{path}: the distribution of {name} is none of constant, integers, uniform, normal, uniform scaled by one"
            " number, a triangle or signs; write the task in this project's form, with --tasks-file"
        )
    return Array(name, draws[0].shape, str(draws[0].dtype), init, parameter)


def recognise(draws: list[np.ndarray]) -> str | None:
    """The `init` of an array from its draws at several seeds; None where it fits no distribution."""
    first = draws[0]
    if first.ndim == 2 and first.size > 1 and first.any() and first.dtype.kind == "f":
        for structure, cut in (("triu", np.triu), ("tril", np.tril)):
            if all(np.array_equal(cut(draw), draw) for draw in draws):
                inside = cut(np.ones(first.shape, bool))
                return _within(structure, _plain([draw[inside] for draw in draws]))
        if first.shape[0] == first.shape[1] and all(np.array_equal(draw, draw.T) for draw in draws):
            return None  # halves of sums: neither distribution
    return _plain(draws)


def _within(structure: str, init: str | None) -> str | None:
    return None if init is None else f"{structure}({init})"


def _plain(draws: list[np.ndarray]) -> str | None:
    numbers = np.concatenate([draw.ravel()[:_MOST_NUMBERS] for draw in draws])
    if numbers.size == 0:
        return "constant(0)"
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return f"constant({low:.9g})"
    if numbers.dtype.kind in "iub":
        return f"integers({int(low)},{int(high) + 1})"
    if set(np.unique(numbers)) == {-1.0, 1.0}:
        return "sign(uniform(-1,1))"
    if any(np.array_equal(draw, draws[0]) for draw in draws[1:]):
        return None  # fixed values
    ordered = np.sort(numbers.astype(np.float64))
    return _uniform(ordered) or _normal(ordered) or _scaled(draws)


def _scaled(draws: list[np.ndarray]) -> str | None:
    """Uniform numbers, times one that is uniform over the draws."""
    largest = np.sort([float(draw.max()) for draw in draws])
    shares = np.concatenate([draw.ravel()[:_MOST_NUMBERS] / max(float(draw.max()), 1e-30) for draw in draws])
    alike = _uniform(np.sort(shares.astype(np.float64))) == "uniform(0,1)"
    return "uniform(0,1)*scalar:uniform(0,1)" if alike and _fits(np.clip(largest, 0, 1)) else None


def _fits(cumulative: np.ndarray) -> bool:
    """Whether sorted numbers, through the distribution's function, are uniform: Kolmogorov and Smirnov's test."""
    places = (np.arange(cumulative.size) + 0.5) / cumulative.size
    return float(np.abs(cumulative - places).max()) < 2.0 / np.sqrt(cumulative.size)  # misses one in a thousand


def _uniform(numbers: np.ndarray) -> str | None:
    margin = (numbers[-1] - numbers[0]) / numbers.size  # what the range of a sample lacks on each side, on average
    low, high = numbers[0] - margin, numbers[-1] + margin
    if abs(low) < 0.01 * high:
        low = 0.0
    if abs(low + high) < 0.02 * high:
        high = max(high, -low)
        low = -high
    init = f"uniform({low:.3g},{high:.3g})"
    return init if _fits(np.clip((numbers - low) / (high - low), 0, 1)) else None


def _normal(numbers: np.ndarray) -> str | None:
    from math import erf

    mean, deviation = float(numbers.mean()), float(numbers.std())
    if abs(mean) < 4 * deviation / np.sqrt(numbers.size):
        mean = 0.0
    picked = numbers[:: max(1, numbers.size // _ENOUGH)]
    cumulative = np.array([0.5 * (1 + erf((x - mean) / (deviation * 2**0.5))) for x in picked])
    return f"normal({mean:.3g},{deviation:.3g})" if _fits(cumulative) else None
