"""A line for each iteration while a run goes on: how many samples are right, how many of these new, the best so far."""

from collections.abc import Iterable, Sequence

from cudal1_jax.contrastive import novelty
from cudal1_jax.contrastive.records import SEED_STEP, Judged
from cudal1_jax.report import progress, summary
from evaluator.judge.table import span


class IterationLines:
    """Tells of the iterations of a run of `count`; `known` are the token streams of programs that are not new."""

    def __init__(self, count: int, known: Iterable[str]):
        self._count = count
        self._seen = set(known)
        self._last = SEED_STEP - 1  # iteration up to which programs are among those seen

    def tell(self, step: int, judged: Sequence[Judged], seconds: float) -> None:
        """Prints the line of iteration `step`; `judged` are all verdicts of the run up to it."""
        fresh = [entry for entry in judged if self._last < entry.step <= step]  # those of before a continuation too
        new = novelty.novel(fresh, self._seen)
        self._seen |= novelty.streams(fresh)
        self._last = step
        right = [is_new for entry, is_new in zip(fresh, new, strict=True) if entry.step == step and entry.verdict.ok]
        samples = [entry for entry in fresh if entry.step == step]
        best = ", ".join(_best(judged, task) for task in dict.fromkeys(entry.task for entry in samples))
        progress.say(
            f"iteration {step + 1} of {self._count}: right: {len(right)} of {len(samples)} samples, new and right:"
            f" {sum(right)}; best so far: {best}; {seconds:.0f} s"
        )


def _best(judged: Sequence[Judged], task: str) -> str:
    best = summary.best(judged, task)
    if best is None:
        return f"{task} none"
    return f"{task} {best.speedup.value:.2f} ({span(best.speedup.low, best.speedup.high)})"
