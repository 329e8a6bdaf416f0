"""An example of the corpus, and its JSON form."""

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from cudal1_jax.contrastive import prompt
from cudal1_jax.contrastive.exemplars import Exemplar
from cudal1_jax.corpus.program import Program
from cudal1_jax.corpus.respelling import respelled
from cudal1_jax.corpus.workload import SIZE
from evaluator.program.identity import token_stream
from evaluator.records import Interval
from evaluator.tasks.task import Array, Task

DEVICE = "cpu"
ANSWERS = 4  # examples with two exemplars that one program of a contest answers
ALONE = 1  # examples of a contest with one exemplar


@dataclasses.dataclass(frozen=True)
class Example:
    """One training text: what the policy reads and what it should write, with where it came from."""

    kind: str  # single, variant, contrastive or heldout
    number: int  # place in the corpus of its kind; of a contrastive one, 100 times its contest's and its place there
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
    kernels: bool = False  # the programs are those of `kernels/`: each right one is an example without exemplars too


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


def contrastive(contest: Contest, speedups: Mapping[str, Interval], most: int) -> list[Example]:
    """Up to `most` examples of a measured contest: slower candidates are shown, slowest first; a faster one answers.

    `speedups` maps the text of each right candidate to its time's ratio to the plain program's. The answer is faster
    than all that are shown by more than the noise of both figures. No answer comes more than `ANSWERS` times beside
    two exemplars, and after a contest's first example programs stand in other words. Up to `ALONE` examples show a
    single exemplar, since a run shows one where it has no second.
    """
    rng = Random(f"{contest.task.id} contrastive")
    ranked = [program for program in contest.candidates if program.text in speedups]
    ranked.sort(key=lambda program: speedups[program.text].value)
    shown: list[tuple[Program, ...]] = []
    for count, limit, all_limit in ((1, 1, ALONE), (2, ANSWERS, most)):
        for answer in reversed(ranked):
            slower = [each for each in ranked if _is_slower(speedups[each.text], speedups[answer.text])]
            groups = list(itertools.combinations(slower, count))
            room = min(limit, all_limit - len(shown))
            shown += [(*group, answer) for group in rng.sample(groups, max(0, min(room, len(groups))))]
    streams = {program.text: stream_digest(program.text) for program in ranked}
    return [
        _contrastive(contest, place, group, speedups, streams[group[-1].text], rng) for place, group in enumerate(shown)
    ]


def _is_slower(one: Interval, other: Interval) -> bool:
    """Whether the difference of two figures is larger than what their intervals, which are independent, allow."""
    return other.value - one.value > math.hypot(other.value - other.low, one.high - one.value)


def _contrastive(
    contest: Contest,
    place: int,
    group: tuple[Program, ...],
    speedups: Mapping[str, Interval],
    stream: str,
    rng: Random,
) -> Example:
    """One example; the last of `group` answers, those before it are shown. `stream` is the answer's, in any words."""
    kept = tuple(array.argument for array in contest.task.sizes[SIZE])
    *earlier, best = group
    texts = [respelled(program.text, rng, kept) if place else program.text for program in group]
    exemplars = [
        Exemplar(program=text, speedup=speedups[program.text]) for text, program in zip(texts, earlier, strict=False)
    ]
    words = ("first", "second")
    analysis = " ".join(f"The {word} program {program.trait}." for word, program in zip(words, earlier, strict=False))
    return Example(
        kind="contrastive",
        number=100 * contest.number + place,
        key=contest.key,
        task=contest.task,
        program=texts[-1],
        stream=stream,
        form=best.form,
        techniques=best.techniques,
        prompt=prompt.render(contest.task, SIZE, exemplars, DEVICE),
        completion=prompt.completion(analysis, best.design, texts[-1]),
    )


def variants(contest: Contest, right: Collection[str]) -> list[Example]:
    """The candidates of a contest of `kernels/` whose texts are in `right`, as examples without exemplars."""
    programs = [program for program in contest.candidates if program.text in right]
    return [
        single("variant", 100 * contest.number + place, contest.key, contest.task, contest.bottleneck, program)
        for place, program in enumerate(programs)
    ]


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
