"""What came of mutants, as tables for people."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from evaluator.judge.table import columns
from evaluator.mutants.trial import State, Trial


@dataclasses.dataclass(frozen=True)
class Count:
    """Numbers of one kind of fault. derived >= tried = refused + same_code + unexposed + exposed."""

    derived: int  # from all programs, tried or not
    tried: int
    refused: int
    same_code: int
    unexposed: int
    exposed: int
    caught: int
    outcomes: Mapping[str, int]  # of those caught

    @property
    def survivors(self) -> int:
        return self.exposed - self.caught


def count(trials: Iterable[Trial], derived: int) -> Count:
    trials = list(trials)
    ran = [trial for trial in trials if trial.state is State.TRIED]
    return Count(
        derived=derived,
        tried=len(trials),
        refused=sum(trial.state is State.REFUSED for trial in trials),
        same_code=sum(trial.state is State.SAME_CODE for trial in trials),
        unexposed=sum(not trial.exposed for trial in ran),
        exposed=sum(trial.exposed for trial in ran),
        caught=sum(trial.caught for trial in ran),
        outcomes=collections.Counter(str(trial.outcome) for trial in ran if trial.caught),
    )


def table(trials: Sequence[Trial], derived: Mapping[str, int]) -> str:
    """A line for each kind, in the order of `derived` (kind -> how many there are), and one for all."""
    rows: list[tuple[str, ...]] = [
        ("kind", "derived", "tried", "refused", "same code", "unexposed", "exposed", "caught", "share", "caught as")
    ]
    for kind, total in derived.items():
        rows.append(_row(kind, count((trial for trial in trials if trial.kind == kind), total)))
    rows.append(_row("all", count(trials, sum(derived.values()))))
    return columns(rows)


def _row(name: str, counted: Count) -> tuple[str, ...]:
    numbers = (counted.derived, counted.tried, counted.refused, counted.same_code, counted.unexposed)
    share = f"{counted.caught / counted.exposed:.1%}" if counted.exposed else "-"
    ordered = sorted(counted.outcomes.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{outcome} {number}" for outcome, number in ordered[:3])
    rest = sum(number for _, number in ordered[3:])
    shown += f", others {rest}" if rest else ""
    return (name, *map(str, numbers), str(counted.exposed), str(counted.caught), share, shown)


def summary(trials: Sequence[Trial]) -> str:
    """The share of exposed mutants that was caught, and how strong the search is, in a few lines."""
    counted = count(trials, len(trials))
    programs = {trial.program for trial in trials}
    both = sum(trial.caught and trial.exposure is not None for trial in trials)
    found = sum(trial.exposure is not None for trial in trials)
    lines = [
        f"{counted.tried} mutants of {len(programs)} programs tried; {counted.exposed} of the "
        f"{counted.tried - counted.refused - counted.same_code} that ran are exposed, {counted.unexposed} are not"
    ]
    if counted.exposed:
        lines.append(
            f"caught: {counted.caught} of {counted.exposed} exposed ({counted.caught / counted.exposed:.2%}), "
            f"{counted.survivors} survive"
        )
        lines.append(
            f"the search alone exposes {found}, of which the judge catches {both}; "
            f"the judge catches {counted.caught - both} that the search does not expose"
        )
    return "\n".join(lines)


def survivors(trials: Iterable[Trial]) -> str:
    """Exposed mutants that the judge let pass, each with the input that exposed it."""
    lines = []
    for trial in sorted(trials, key=lambda trial: (trial.kind, trial.program, trial.line)):
        if trial.exposed and not trial.caught and trial.exposure is not None:
            by = trial.exposure
            error = "" if by.error is None else f", {by.error:.3g} times the bound"
            lines += [
                f"{trial.program}, line {trial.line}: {trial.kind} ({trial.id})",
                f"  - {trial.before}",
                f"  + {trial.after}",
                f"  exposed by draw {by.draw} ({by.distribution}, {by.order} order): {by.how}{error}",
            ]
    return "\n".join(lines)
