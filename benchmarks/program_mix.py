"""Programs as a policy writes them: right ones, wrong ones, and such as do not compile, each with a text of its own."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.text_file import read_program

_KERNEL = re.compile(r"__global__[^;{]*\{")


@dataclasses.dataclass(frozen=True)
class Program:
    task_id: str
    kind: str  # a key of FAULTS
    text: str


def _kernel_begins_with(statement: str) -> Callable[[str], str]:
    """Puts a statement in front of every kernel's body."""

    def changed(text: str) -> str:
        return _KERNEL.sub(rf"\g<0> {statement}", text)

    return changed


# What half of a policy's programs do that are not right, from faults found at once to those that take a GPU's context.
FAULTS: dict[str, Callable[[str], str]] = {
    "right": lambda text: text,
    "refused": lambda text: "import os\n" + text,
    "no trace": lambda text: text.replace("    return out", "    return out[0, 0, 0, 0]"),
    "no compile": _kernel_begins_with("missing();"),
    "wrong value": lambda text: text.replace("    return out", "    out.fill(0.5)\n    return out"),
    "out of bounds": _kernel_begins_with("if (threadIdx.x + blockIdx.x + blockIdx.y == 0) out[1ull << 40] = 1.0f;"),
}
LETHAL = "out of bounds"  # takes the context of a GPU along
_FAULTY = ("no compile", "wrong value", "refused", "no trace", LETHAL)
_ORDER = tuple(itertools.chain.from_iterable(("right", kind) for kind in _FAULTY))


def mix(task_ids: Sequence[str], count: int, first: int) -> Iterator[Program]:
    """`count` programs over the tasks, five of a task in a row as the samples of a prompt are.

    Those made from other numbers than `first` and the next `count` have other texts: no cache knows them.
    """
    sources = {task_id: _sources(task_id) for task_id in task_ids}
    for number in range(first, first + count):
        task_id = task_ids[(number - first) // 5 % len(task_ids)]
        kind = _ORDER[(number - first) % len(_ORDER)]
        text = sources[task_id][number % len(sources[task_id])]
        yield Program(task_id, kind, FAULTS[kind](_told_apart(text, number)))


def same(task_ids: Sequence[str], count: int, first: int) -> Iterator[Program]:
    """The plain programs of the tasks in turn, each with a text of its own."""
    texts = {task_id: read_program(kernels_folder() / task_id / "plain.py") for task_id in task_ids}
    for number, task_id in zip(range(first, first + count), itertools.cycle(task_ids), strict=False):
        yield Program(task_id, "right", _told_apart(texts[task_id], number))


def _sources(task_id: str) -> list[str]:
    """The task's programs all of whose kernels write floats to `out`, as the faults want it."""
    texts = [read_program(path) for path in sorted((kernels_folder() / task_id).glob("*.py"))]
    return [text for text in texts if "    return out\n" in text and all(map(_writes_out, _KERNEL.findall(text)))]


def _writes_out(heading: str) -> bool:
    return re.search(r"\bfloat\* (__restrict__ )?out\b", heading) is not None


def _told_apart(text: str, number: int) -> str:
    return text.replace("r'''\n", f"r'''\n// program {number}\n", 1)
