"""The corpus as a function of its seed: held-out tasks, single examples, and contests to be measured."""

import dataclasses
from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import canonical, families
from cudal1_jax.corpus.example import Contest, Example, single, stream_digest
from cudal1_jax.corpus.program import Program
from cudal1_jax.corpus.workload import Workload

ELEMENTS = (4_000, 600_000)  # elements of a task's largest array
CONTEST_ELEMENTS = (40_000, 400_000)  # large enough for differences to show on the emulator
CANDIDATES = 6  # of a contest: each is measured once and stands in several examples
DRAWS = 8  # beside one of every form, for tasks that have few forms
HELD_OUT = {  # tasks kept out of training, by generator
    "elementwise": 10,
    "rowwise": 8,
    "affine": 0,
    "reduction": 5,
    "argreduce": 2,
    "scan": 4,
    "product": 4,
    "vector_product": 2,
    "product_fold": 1,
    "total": 4,
}

Fits = Callable[[str], bool]  # whether a program is short enough


def held_out(seed: int, fits: Fits) -> list[Example]:
    """The tasks kept out of training, each with its plain program. Their step lists have two steps or more."""
    rng = Random(f"{seed} held-out")
    examples: list[Example] = []
    taken: set[str] = set()
    for name, draw, _ in families.SOURCES:
        wanted = HELD_OUT[name]
        while wanted:
            workload = draw(rng, ELEMENTS)
            key = canonical.key(workload)
            plain = workload.writers[0](rng)
            if len(key.split()) < 3 or key in taken or canonical.is_real(workload) or not fits(plain.text):
                continue
            taken.add(key)
            wanted -= 1
            task = dataclasses.replace(workload.task, id=f"heldout_{len(examples):02d}")
            examples.append(single("heldout", len(examples), key, task, workload.bottleneck, plain))
    return examples


def singles(seed: int, shard: int, count: int, banned: frozenset[str], fits: Fits) -> list[Example]:
    """`count` examples without exemplars: one task each, no program twice within the shard (token for token)."""
    rng = Random(f"{seed} singles {shard}")
    seen: set[str] = set()
    examples: list[Example] = []
    while len(examples) < count:
        workload = _draw(rng, banned, ELEMENTS)
        # A task whose first program is too long is not lost: long rows with weights would hardly occur otherwise.
        drawn = (writer(rng) for writer in rng.sample(workload.writers, len(workload.writers)))
        program = next((program for program in drawn if fits(program.text)), None)
        if program is None:
            continue
        example = _single(shard * count + len(examples), workload, program)
        if example.stream not in seen:
            seen.add(example.stream)
            examples.append(example)
    return examples


def contests(seed: int, shard: int, count: int, banned: frozenset[str], fits: Fits) -> list[Contest]:
    """`count` tasks with six different programs each, of as many forms as there are, to be measured."""
    rng = Random(f"{seed} contests {shard}")
    made: list[Contest] = []
    while len(made) < count:
        workload = _draw(rng, banned, CONTEST_ELEMENTS)
        plain = workload.writers[0](rng)
        candidates = _candidates(rng, workload, fits)
        if len(candidates) == CANDIDATES and fits(plain.text):
            number = shard * count + len(made)
            task = dataclasses.replace(workload.task, id=f"contest_{number:05d}")
            key = canonical.key(workload)
            made.append(Contest(number, key, task, workload.bottleneck, plain.text, tuple(candidates)))
    return made


def _candidates(rng: Random, workload: Workload, fits: Fits) -> list[Program]:
    """Different programs that fit: one of every form first, then further ones with other free choices."""
    found: dict[str, Program] = {}
    drawn = [writer(rng) for writer in (*workload.writers, *rng.choices(workload.writers, k=DRAWS))]
    drawn = [program for program in drawn if fits(program.text)]
    one_each = list({program.form: program for program in rng.sample(drawn, len(drawn))}.values())
    for program in (*one_each, *drawn) if len(one_each) > 1 else ():
        if len(found) < CANDIDATES:
            found.setdefault(stream_digest(program.text), program)
    return list(found.values())


def _draw(rng: Random, banned: frozenset[str], elements: tuple[int, int]) -> Workload:
    while True:
        workload = families.draw(rng, elements)
        if canonical.key(workload) not in banned and not canonical.is_real(workload):
            return workload


def _single(number: int, workload: Workload, program: Program) -> Example:
    task = dataclasses.replace(workload.task, id=f"single_{number:05d}")
    return single("single", number, canonical.key(workload), task, workload.bottleneck, program)
