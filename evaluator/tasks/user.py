"""Tasks from a user's own Python file.

The file holds functions and one table:

    def forward(nn, x, weight):
        return nn.relu(nn.matmul(x, weight))

    TASKS = {
        "relu_product": {
            "forward": forward,
            "sizes": {"cpu": {"x": (60, 50), "weight": {"shape": (50, 70), "init": "normal(0,1)", "parameter": True}}},
        },
    }

A size lists the arrays in the order of the arguments of `forward`, as shapes or as the fields of `Array`. Other
fields of `Task` (name, family, precision, cases, degenerate, collapses, notes) may stand beside "forward" and "sizes".
"""

import inspect
import pathlib
import re
import runpy
from collections.abc import Callable, Mapping
from typing import Any

from evaluator.tasks.arrays import parse_init
from evaluator.tasks.notation import forward_text
from evaluator.tasks.task import CASES, DTYPES, Array, Task

_TASK_FIELDS = {"name", "family", "precision", "cases", "degenerate", "collapses", "notes"}
_ARRAY_FIELDS = {"shape", "dtype", "init", "parameter"}
_PRECISIONS = ("fp32", "tf32", "half")
# Of the catalog, and of tasks that fit none; how far outputs may be off depends on it (docs/protocol.md).
_FAMILIES = ("attention", "chain", "convolution", "elementwise", "loss", "matmul", "model", "pooling", "reduction",
             "rowwise", "scan", "user")  # fmt: skip


class TaskFileError(ValueError):
    """A task file that cannot be used; the message names the file, the entry and the cure."""


def load(path: str | pathlib.Path) -> dict[str, Task]:
    """Tasks of the file at `path`, by id. The file is run as Python. Raises TaskFileError."""
    if pathlib.Path(path).is_dir():
        raise TaskFileError(f"{path}: a folder; give the path of one Python file that defines TASKS")
    if not pathlib.Path(path).is_file():
        raise TaskFileError(f"{path}: no such file; give the path of a Python file that defines TASKS")
    try:
        module = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:  # whatever the user's code raises is a finding about the file
        raise TaskFileError(f"{path}: running the file raised {type(error).__name__}: {error}") from error
    table = module.get("TASKS")
    if not isinstance(table, dict) or not table:
        raise TaskFileError(f"{path}: expected a dict TASKS of id to entry, saw {type(table).__name__}")
    return {task_id: _task(f"{path}: TASKS[{task_id!r}]", task_id, entry) for task_id, entry in table.items()}


def _task(where: str, task_id: Any, entry: Any) -> Task:
    if not isinstance(task_id, str) or not re.fullmatch(r"\w+", task_id, re.ASCII):
        raise TaskFileError(f"{where}: an id is a string of letters, digits and underscores")
    if not isinstance(entry, Mapping) or not {"forward", "sizes"} <= set(entry):
        raise TaskFileError(f'{where}: an entry is a dict with "forward" and "sizes"')
    extra = {key: value for key, value in entry.items() if key not in ("forward", "sizes")}
    _known(where, extra, _TASK_FIELDS)
    if extra.get("precision", "fp32") not in _PRECISIONS:
        raise TaskFileError(f"{where}: precision is {extra['precision']!r}; it must be one of {', '.join(_PRECISIONS)}")
    if extra.get("family", "user") not in _FAMILIES:
        raise TaskFileError(f"{where}: family is {extra['family']!r}; it must be one of {', '.join(_FAMILIES)}")
    for field in ("cases", "notes"):
        if extra.get(field) is not None:
            if not isinstance(extra[field], tuple | list) or not all(isinstance(text, str) for text in extra[field]):
                raise TaskFileError(f'{where}: "{field}" is a tuple of strings, saw {extra[field]!r}')
            extra[field] = tuple(extra[field])
    if unknown := sorted(set(extra.get("cases") or ()) - set(CASES)):
        raise TaskFileError(f"{where}: unknown case {unknown[0]!r}; the cases are {', '.join(CASES)}")
    source = _source(where, entry["forward"])
    sizes = entry["sizes"]
    if not isinstance(sizes, Mapping) or not sizes:
        raise TaskFileError(f'{where}: "sizes" is a dict of size to arrays with at least one size, such as "cpu"')
    arrays = {size: _arrays(f"{where}, size {size!r}", entry["forward"], listed) for size, listed in sizes.items()}
    return Task(**{"id": task_id, "name": task_id, "family": "user", "source": source, "sizes": arrays, **extra})


def _source(where: str, forward: Any) -> str:
    try:
        return forward_text(forward)
    except (OSError, TypeError, ValueError) as error:
        raise TaskFileError(f'{where}: "forward" must be a function defined with `def` in the file: {error}') from error


def _arrays(where: str, forward: Callable, listed: Any) -> tuple[Array, ...]:
    if not isinstance(listed, Mapping) or not listed:
        raise TaskFileError(f"{where}: expected a dict of array name to shape, saw {listed!r}")
    arrays = tuple(_array(f"{where}, array {name!r}", name, spec) for name, spec in listed.items())
    expected = list(inspect.signature(forward).parameters)[1:]
    seen = [array.argument for array in arrays]
    if seen != expected:
        raise TaskFileError(
            f"{where}: forward takes {expected} after nn, but the size lists {seen}; give the same order"
        )
    flags = [array.parameter for array in arrays]
    if flags != sorted(flags):
        raise TaskFileError(f"{where}: parameters come after the inputs")
    return arrays


def _array(where: str, name: str, spec: Any) -> Array:
    fields = dict(spec) if isinstance(spec, Mapping) else {"shape": spec}
    _known(where, fields, _ARRAY_FIELDS)
    shape = fields.pop("shape", None)
    if not isinstance(shape, tuple | list) or not all(type(n) is int and n >= 0 for n in shape):
        raise TaskFileError(f"{where}: a shape is a tuple of integers, saw {shape!r}")
    array = Array(name, tuple(shape), **fields)
    if array.dtype not in DTYPES:
        raise TaskFileError(f"{where}: dtype is {array.dtype!r}; it must be one of {', '.join(DTYPES)}")
    try:
        parse_init(array.init)
    except (TypeError, ValueError) as error:
        raise TaskFileError(f"{where}: {error}") from error
    return array


def _known(where: str, fields: Mapping[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(fields) - allowed)
    if unknown:
        raise TaskFileError(f"{where}: unknown field {unknown[0]!r}; the fields are {', '.join(sorted(allowed))}")
