"""Speed-ups as rows on one axis of ratios: seven buckets, interval and median of each. Needs matplotlib."""

import dataclasses
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from evaluator.judge.timing import rounded
from evaluator.records import Interval, Verdict

_FASTER, _SLOWER, _EVEN = "#0072B2", "#D55E00", "#6E6E6E"  # told apart by everybody
_ROW_IN, _DENSE_ROW_IN, _DENSE = 0.26, 0.17, 20  # height of a row, and where there are more than so many
_ALL_BASELINES = 4  # programs up to which every baseline has a row; beyond, the smallest speed-up of each
# Marks on the axis of ratios: the first of these that holds all of them.
_TICKS = (
    (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2),
    (0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5),
    (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)
_WIDEST = 1000.0  # an interval is drawn no further from its value: one without an end has no place on an axis


@dataclasses.dataclass(frozen=True)
class Ratio:
    """One row: a program over a baseline."""

    label: str
    speedup: Interval


def ratios_of(rows: Sequence[tuple[str, Verdict]]) -> list[Ratio]:
    """Of few programs each speed-up, of many the smallest of each, largest first."""
    found = [
        Ratio(f"{name} over {baseline}", _drawable(speedup))
        for name, verdict in rows
        for baseline, speedup in _chosen(verdict, len(rows) <= _ALL_BASELINES)
    ]
    return found if len(rows) <= _ALL_BASELINES else sorted(found, key=lambda ratio: -ratio.speedup.value)


def height_in(ratios: Sequence[Ratio]) -> float:
    """Inches that the rows take."""
    return len(ratios) * (_ROW_IN if len(ratios) <= _DENSE else _DENSE_ROW_IN)


def draw(axes: Axes, ratios: Sequence[Ratio]) -> None:
    """Draws at least one row, the first on top."""
    axes.axvline(1.0, color="black", linewidth=0.8)
    size = 8 if len(ratios) <= _DENSE else 6.5
    for row, ratio in enumerate(ratios):
        seen, colour = ratio.speedup, _colour(ratio.speedup)
        axes.hlines(row, seen.low, seen.high, color=colour, linewidth=7, alpha=0.25)
        axes.plot(
            seen.buckets, [row] * len(seen.buckets), "o", color=colour, markersize=4, alpha=0.75, linestyle="none"
        )
        axes.plot([seen.value], [row], "|", color=colour, markersize=11, markeredgewidth=2)
        axes.annotate(
            f"{rounded(seen):.2f}", (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize=size,
            color=colour,
        )  # fmt: skip
    axes.set_yticks(range(len(ratios)), [ratio.label for ratio in ratios], fontsize=size)
    axes.set_ylim(len(ratios) - 0.4, -0.6)
    _scale(axes, ratios)
    axes.set_xlabel("times as fast; dots: the seven buckets, bar: 99 % interval, stroke: median", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _drawable(speedup: Interval) -> Interval:
    low, high = max(speedup.low, speedup.value / _WIDEST), min(speedup.high, speedup.value * _WIDEST)
    return dataclasses.replace(speedup, low=low, high=high)


def _chosen(verdict: Verdict, everyone: bool) -> list[tuple[str, Interval]]:
    each = list(verdict.speedups.items()) if verdict.ok else []
    return each if everyone else sorted(each, key=lambda item: item[1].value)[:1]


def _scale(axes: Axes, ratios: Sequence[Ratio]) -> None:
    """Logarithmic, with all that is drawn and 1 in sight."""
    axes.set_xscale("log")
    least = min(1.0, *(min(ratio.speedup.low, *ratio.speedup.buckets, ratio.speedup.value) for ratio in ratios))
    most = max(1.0, *(max(ratio.speedup.high, *ratio.speedup.buckets, ratio.speedup.value) for ratio in ratios))
    least, most = min(0.97 * least, 0.9), max(1.03 * most, 1.1)
    axes.set_xlim(least, most)
    fine = next((each for each in _TICKS if each[0] <= least and most <= each[-1]), _TICKS[-1])
    ticks = [tick for tick in fine if least <= tick <= most]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks], fontsize=8)
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)


def _colour(speedup: Interval) -> str:
    """By what the interval says: faster, slower, or neither."""
    if speedup.low > 1.0:
        return _FASTER
    return _SLOWER if speedup.high < 1.0 else _EVEN
