"""Judges a share of a corpus for correctness and prints a table by family and form."""

import collections
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tqdm import tqdm

from cudal1_jax.corpus import folder
from evaluator.judge.job import Job
from evaluator.records import Mode, Verdict
from evaluator.tasks.task import Task
from evaluator.workers.local import LocalPool

Group = tuple[str, str]  # family, form


def verify(out: Path, share: float, seed: int, workers: int) -> dict[Group, tuple[int, int, list[str]]]:
    """Judge a random share of every family and form, at least one of each: (ok, judged, what the others ended in)."""
    chosen = list(_chosen(out, share, seed))
    found: dict[Group, tuple[int, int, list[str]]] = {}
    with LocalPool(workers, {"mode": Mode.QUICK}) as pool:
        for group, name, task, program in chosen:
            pool.submit(Job(key=(group, name), text=program, task=task, timing=False))
        for job, verdict in tqdm(pool.completed(), total=len(chosen), desc="judging", unit=" programs"):
            group, name = job.key
            ok, judged, faults = found.get(group, (0, 0, []))
            found[group] = (
                ok + int(verdict.ok),
                judged + 1,
                faults if verdict.ok else [*faults, _fault(name, verdict)],
            )
    return dict(sorted(found.items()))


def table(found: dict[Group, tuple[int, int, list[str]]]) -> str:
    """The counts as text, faults beneath."""
    lines = [f"{'family':<14}{'form':<20}{'judged':>8}{'ok':>8}"]
    lines += [f"{family:<14}{form:<20}{judged:>8}{ok:>8}" for (family, form), (ok, judged, _) in found.items()]
    lines.append(f"{'all':<34}{sum(each[1] for each in found.values()):>8}{sum(each[0] for each in found.values()):>8}")
    lines += [f"  {fault}" for *_, faults in found.values() for fault in faults]
    return "\n".join(lines)


def _chosen(out: Path, share: float, seed: int) -> Iterator[tuple[Group, str, Task, str]]:
    groups: dict[Group, list[tuple[str, Task, str]]] = collections.defaultdict(list)
    for each in [*folder.read_held_out(out), *folder.read_examples(out, ("single",))]:
        groups[each.family, each.form].append((each.task.id, each.task, each.program))
    for contest in folder.read_contests(out):
        for candidate in contest.candidates:
            groups[contest.task.family, candidate.form].append((contest.task.id, contest.task, candidate.text))
    rng = Random(f"{seed} verify")
    for group, members in sorted(groups.items(), key=lambda item: item[0]):
        for name, task, program in rng.sample(members, max(1, math.ceil(share * len(members)))):
            yield group, name, task, program


def _fault(name: str, verdict: Verdict) -> str:
    return f"{name}: {verdict.outcome.value}: {verdict.message.splitlines()[0] if verdict.message else ''}"
