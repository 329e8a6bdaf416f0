"""Contests between the programs of `kernels/`, in other words and block sizes, for tasks that are not kept out.

Their style (64-bit indices, helper functions, pointers that move) is that of the programs a run begins with, so it must
occur as exemplar and as answer. Tasks get other extents; what the programs do not stand is found out by the judge.
"""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

from cudal1_jax.contrastive.prompt import without_docstring
from cudal1_jax.corpus import canonical, elementwise_forms, pointwise, workload
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.elementwise_setting import Spec
from cudal1_jax.corpus.example import Contest, stream_digest
from cudal1_jax.corpus.pointwise import Step
from cudal1_jax.corpus.program import Program
from cudal1_jax.corpus.respelling import respelled
from evaluator.program.docstring import facts
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task

FIRST_NUMBER = 1_000_000  # contests of generated tasks are numbered from zero
PROGRAMS = 6  # of a contest
BLOCKS = (64, 128, 256, 512)
BLOCK_IN_CUDA = re.compile(r"\b(32|64|128|256|512|1024|2048)\b")
STEPS = {  # elementwise tasks that the generator's own forms can write too: step and constants
    "1_020": ("leaky_relu", ("0.01",)),
    "1_021": ("sigmoid", ()),
    "1_022": ("tanh", ()),
    "1_025": ("swish", ()),
    "1_027": ("selu", ()),
    "1_028": ("hardsigmoid_call", ()),
    "1_029": ("softplus", ()),
    "1_030": ("softsign", ()),
    "1_031": ("elu", ("1.0",)),
    "1_032": ("hardtanh", ("1.0",)),
    "1_088": ("gelu_written", ()),
}
BOTTLENECKS = (
    "Every element is read once and written once, so traffic and index arithmetic decide.",
    "Loads and stores bound the time; what each thread does beside them should be little.",
    "Few operations per element: overhead per thread and the order of the reads are what can be won.",
)
Fits = Callable[[str], bool]


def contests(seed: int, kernels: Path, per_task: int, fits: Fits) -> list[Contest]:
    """`per_task` contests for every task of `kernels/` that is not kept out and has a program short enough."""
    made: list[Contest] = []
    for folder in sorted(path.parent for path in kernels.glob("*/plain.py")):
        if folder.name in canonical.KEPT_OUT:
            continue
        for number in range(per_task):
            rng = Random(f"{seed} kernels {folder.name} {number}")
            contest = _contest(rng, FIRST_NUMBER + len(made), folder, number, fits)
            if contest is not None:
                made.append(contest)
    return made


def _contest(rng: Random, number: int, folder: Path, place: int, fits: Fits) -> Contest | None:
    known = catalog.get(folder.name)
    arrays = known.arrays_at(workload.SIZE)
    task = Task(
        id=f"kernels_{folder.name}_{place}",
        name=known.family,
        family=known.family,
        source=known.source_at(workload.SIZE),
        sizes={workload.SIZE: _resized(rng, arrays) if place else arrays},
        cases=known.cases,
    )
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    arguments = tuple(array.argument for array in arrays)
    drawn = [_variant(rng, name, text, arguments) for name, text in texts.items() for _ in range(3)]
    rng.shuffle(drawn)
    drawn = [*_generated(rng, folder.name, task), *drawn]
    candidates = {stream_digest(program.text): program for program in drawn if fits(program.text)}
    if not candidates:
        return None
    return Contest(
        number=number,
        key=f"kernels {folder.name}",
        task=task,
        bottleneck=rng.choice(BOTTLENECKS),
        plain=texts["plain"],
        candidates=tuple(list(candidates.values())[:PROGRAMS]),
        kernels=True,
    )


def _variant(rng: Random, name: str, text: str, arguments: tuple[str, ...]) -> Program:
    """A program of `kernels/` without its docstring, in other words, perhaps with other blocks."""
    notes = facts(text)
    first = notes.rationale.split("\n\n")[0].split("\n")[0].rstrip(".")
    listed = ", ".join(notes.techniques[:3]) or "one thread per output"
    bare = _other_block(rng, without_docstring(text).strip("\n") + "\n")
    return Program(
        text=respelled(bare, rng, kept=arguments),
        form=name,
        techniques=notes.techniques,
        design=f"{first}.",
        trait=f"uses {listed}",
    )


def _other_block(rng: Random, text: str) -> str:
    """Another block size, where it is a plain constant of the launch and the CUDA text does not know it."""
    cuda, mark, python = text.partition("\ndef forward")
    sizes = [block for block in BLOCKS if f"({block},)" in python and f"+ {block - 1})" in python]
    if len(sizes) != 1 or BLOCK_IN_CUDA.search(cuda):
        return text
    other = rng.choice(BLOCKS)
    python = re.sub(rf"\b{sizes[0]}\b", str(other), python)
    return cuda + mark + re.sub(rf"\b{sizes[0] - 1}\b", str(other - 1), python)


def _generated(rng: Random, name: str, task: Task) -> list[Program]:
    """Two programs of the generator's own, so that one style is shown and the other answers."""
    if name not in STEPS:
        return []
    kind, constants = STEPS[name]
    step = Step(next(each for each in pointwise.UNARY if each.name == kind), constants)
    (array,) = task.sizes[workload.SIZE]
    spec = Spec(Chain((step,)), array.name, array.shape, (array.name,))
    return [form(spec, rng) for form in rng.sample(elementwise_forms.forms(spec), 2)]


def _resized(rng: Random, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """Other extents: all of a matrix that stands alone, else the first one, wherever inputs have that length.

    Beside weights only the first dimension of a task's first array is free: another of its length is that of a weight.
    """
    first = arrays[0].shape
    if len(arrays) == 1 and len(first) == 2:
        shape = (rng.randrange(20, 200), rng.randrange(50, 5_000))
        return (dataclasses.replace(arrays[0], shape=shape),)
    leading = max(1, round(first[0] * rng.uniform(0.4, 1.2)))
    changed = [array if array.parameter else _with_length(array, first[0], leading) for array in arrays]
    if any(array.parameter for array in arrays):
        changed[0] = dataclasses.replace(arrays[0], shape=(leading, *first[1:]))
    return tuple(changed)


def _with_length(array: Array, known: int, new: int) -> Array:
    """`array` with `new` for each extent of `known`: two inputs that share a dimension, and squares, keep doing so."""
    return dataclasses.replace(array, shape=tuple(new if length == known else length for length in array.shape))
