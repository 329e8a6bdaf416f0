"""An example of the corpus, and its JSON form."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cudal1_jax.contrastive import prompt
from cudal1_jax.contrastive.exemplars import Exemplar
from cudal1_jax.corpus.program import Program
from cudal1_jax.corpus.workload import SIZE
from evaluator.program.identity import token_stream
from evaluator.records import Interval
from evaluator.tasks.task import Array, Task

DEVICE = "cpu"


@dataclasses.dataclass(frozen=True)
class Example:
    """One training text: what the policy reads and what it should write, with where it came from."""

    kind: str  # single, contrastive or heldout
    number: int  # place in the corpus of its kind
    key: str  # family and step list in normal form
    task: Task
    program: str  # text of the program in the completion
    stream: str  # digest of its token stream: equal for programs that differ in names only
    form: str
    techniques: tuple[str, ...]
    prompt: str  # user message, before the chat template
    completion: str  # assistant message

    @property
    def family(self) -> str:
        return self.task.family


@dataclasses.dataclass(frozen=True)
class Contest:
    """A task with its plain program and candidates, to be measured before it becomes a contrastive example."""

    number: int
    key: str
    task: Task
    bottleneck: str
    plain: str
    candidates: tuple[Program, ...]


def single(kind: str, number: int, key: str, task: Task, bottleneck: str, program: Program) -> Example:
    """An example that shows no earlier program."""
    return Example(
        kind=kind,
        number=number,
        key=key,
        task=task,
        program=program.text,
        stream=stream_digest(program.text),
        form=program.form,
        techniques=program.techniques,
        prompt=prompt.render(task, SIZE, [], DEVICE),
        completion=prompt.completion(bottleneck, program.design, program.text),
    )


def contrastive(contest: Contest, speedups: Mapping[str, Interval]) -> Example:
    """The example of a measured contest: the fastest candidate answers, the others are its exemplars, slowest first.

    `speedups` maps the text of each candidate to its time's ratio to the plain program's.
    """
    ranked = sorted(contest.candidates, key=lambda program: speedups[program.text].value)
    best, earlier = ranked[-1], ranked[:-1]
    exemplars = [Exemplar(program=program.text, speedup=speedups[program.text]) for program in earlier]
    words = ("first", "second", "third", "fourth")
    analysis = " ".join(f"The {word} program {program.trait}." for word, program in zip(words, earlier, strict=False))
    return Example(
        kind="contrastive",
        number=contest.number,
        key=contest.key,
        task=contest.task,
        program=best.text,
        stream=stream_digest(best.text),
        form=best.form,
        techniques=best.techniques,
        prompt=prompt.render(contest.task, SIZE, exemplars, DEVICE),
        completion=prompt.completion(analysis, best.design, best.text),
    )


def stream_digest(program: str) -> str:
    """Sixteen hex digits of the program's token stream."""
    return hashlib.sha256(token_stream(program).encode()).hexdigest()[:16]


def to_json(example: Example) -> str:
    """One line, keys in the order of the record."""
    return json.dumps({**dataclasses.asdict(example), "task": task_json(example.task)}, ensure_ascii=False)


def from_json(line: str) -> Example:
    """The inverse of `to_json`; KeyError or ValueError where the line is no example."""
    values: dict[str, Any] = json.loads(line)
    task = task_from_json(values.pop("task"))
    return Example(**{**values, "task": task, "techniques": tuple(values["techniques"])})


def task_json(task: Task) -> dict[str, Any]:
    """What a generated task is made of; its other fields have their defaults."""
    arrays = [[array.name, list(array.shape), array.dtype, array.init] for array in task.sizes[SIZE]]
    return {"id": task.id, "family": task.family, "source": task.source, "arrays": arrays, "cases": task.cases}


def task_from_json(values: Mapping[str, Any]) -> Task:
    arrays = tuple(Array(name, tuple(shape), dtype, init) for name, shape, dtype, init in values["arrays"])
    cases = None if values["cases"] is None else tuple(values["cases"])
    return Task(
        id=values["id"],
        name=values["family"],
        family=values["family"],
        source=values["source"],
        sizes={SIZE: arrays},
        cases=cases,
    )


def contest_json(contest: Contest) -> str:
    """One line, as `to_json`."""
    return json.dumps({**dataclasses.asdict(contest), "task": task_json(contest.task)}, ensure_ascii=False)


def contest_from_json(line: str) -> Contest:
    values: dict[str, Any] = json.loads(line)
    programs = (Program(**{**each, "techniques": tuple(each["techniques"])}) for each in values["candidates"])
    return Contest(**{**values, "task": task_from_json(values["task"]), "candidates": tuple(programs)})
