"""The figure of verdicts: seven buckets of each speed-up, and a roofline where the device's peaks are known.

Needs matplotlib. Nothing global is touched: no pyplot, no backend.
"""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from evaluator.judge import table
from evaluator.judge.timing import rounded
from evaluator.records import Interval, Verdict

FASTER, SLOWER, EVEN = "#0072B2", "#D55E00", "#6E6E6E"  # told apart by everybody
_WIDTH_IN, _ROOFLINE_IN, _MARGIN_IN = 8.0, 5.0, 1.3
_ROW_IN, _DENSE_ROW_IN, _DENSE = 0.26, 0.17, 20  # height of a row, and where there are more than so many
_ALL_BASELINES = 4  # programs up to which every baseline has a row; beyond, the smallest speed-up of each
_NAMED_POINTS = 12  # of a roofline at most
# Marks on the axis of ratios: the first of these that holds all of them.
_TICKS = (
    (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2),
    (0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5),
    (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)
_WIDEST = 1000.0  # an interval is drawn no further from its value: one without an end has no place on an axis
_LABEL_DECADES = 0.5, 0.12  # what the name of a point takes of a roofline, across and up


@dataclasses.dataclass(frozen=True)
class Ratio:
    """One row: a program over a baseline."""

    label: str
    speedup: Interval


@dataclasses.dataclass(frozen=True)
class Point:
    """One program in a roofline."""

    label: str
    intensity: float  # operations a byte
    flop_per_s: float
    roof: float  # FLOP/s at this intensity


def draw(rows: Sequence[tuple[str, Verdict]]) -> Figure | None:
    """The figure of (name, verdict); None where nothing was timed."""
    ratios, points = ratios_of(rows), points_of(rows)
    if not ratios and not points:
        return None
    row_in = _ROW_IN if len(ratios) <= _DENSE else _DENSE_ROW_IN
    heights = [row_in * len(ratios) + _MARGIN_IN] * bool(ratios) + [_ROOFLINE_IN] * bool(points)
    figure = Figure(figsize=(_WIDTH_IN, sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    if ratios:
        _draw_ratios(axes[0], ratios)
    if points:
        _draw_roofline(axes[-1], points, _peaks(rows))
    figure.suptitle(_title(rows, ratios), fontsize=10)
    return figure


def save(figure: Figure, path: Path) -> None:
    """As the suffix of `path` says; text of an SVG stays text."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, dpi=150)


def ratios_of(rows: Sequence[tuple[str, Verdict]]) -> list[Ratio]:
    """Of few programs each speed-up, of many the smallest of each, largest first."""
    found = [
        Ratio(f"{_short(name)} over {baseline}", _drawable(speedup))
        for name, verdict in rows
        for baseline, speedup in _chosen(verdict, len(rows) <= _ALL_BASELINES)
    ]
    return found if len(rows) <= _ALL_BASELINES else sorted(found, key=lambda ratio: -ratio.speedup.value)


def points_of(rows: Sequence[tuple[str, Verdict]]) -> list[Point]:
    """Programs whose device's peaks are known and whose task both computes and moves."""
    found = []
    for name, verdict in rows:
        work, achieved = verdict.work, verdict.achieved
        if work is None or achieved is None or not verdict.ok or not work.operations or not work.moved_bytes:
            continue
        if work.peak_bytes_per_s is not None and work.peak_flop_per_s is not None:
            intensity = work.operations / work.moved_bytes
            roof = min(intensity * work.peak_bytes_per_s, work.peak_flop_per_s)
            found.append(Point(_short(name), intensity, achieved.flop_per_s, roof))
    return found


def _drawable(speedup: Interval) -> Interval:
    low, high = max(speedup.low, speedup.value / _WIDEST), min(speedup.high, speedup.value * _WIDEST)
    return dataclasses.replace(speedup, low=low, high=high)


def _chosen(verdict: Verdict, everyone: bool) -> list[tuple[str, Interval]]:
    each = list(verdict.speedups.items()) if verdict.ok else []
    return each if everyone else sorted(each, key=lambda item: item[1].value)[:1]


def _draw_ratios(axes: Axes, ratios: Sequence[Ratio]) -> None:
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
    _scale_ratios(axes, ratios)
    axes.set_xlabel("times as fast; dots: the seven buckets, bar: 99 % interval, stroke: median", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _scale_ratios(axes: Axes, ratios: Sequence[Ratio]) -> None:
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


def _draw_roofline(axes: Axes, points: Sequence[Point], peaks: Sequence[tuple[float, float]]) -> None:
    left = min(min(point.intensity for point in points), *(flop / moved for moved, flop in peaks)) / 3
    right = max(max(point.intensity for point in points), *(flop / moved for moved, flop in peaks)) * 3
    for moved, flop in peaks:
        axes.plot([left, flop / moved, right], [left * moved, flop, flop], color="black", linewidth=1.2)
        axes.annotate(
            f"{table.prefixed(flop, 'FLOP/s')}", (right, flop), xytext=(-3, 3), textcoords="offset points", ha="right",
            fontsize=8,
        )  # fmt: skip
    moved = peaks[0][0]
    axes.annotate(
        table.prefixed(moved, "B/s"), (left, left * moved), xytext=(14, 2), textcoords="offset points", fontsize=8
    )
    axes.plot(
        [point.intensity for point in points], [point.flop_per_s for point in points], "o", color=FASTER, markersize=5,
        alpha=0.75, linestyle="none",
    )  # fmt: skip
    for point in _named(points):
        axes.annotate(
            f"{point.label} {point.flop_per_s / point.roof:.0%}", (point.intensity, point.flop_per_s), xytext=(5, -3),
            textcoords="offset points", fontsize=7,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.tick_params(labelsize=8)
    axes.grid(linewidth=0.4, alpha=0.5)
    axes.set_xlabel("operations of the reference for each byte of inputs and outputs", fontsize=8)
    axes.set_ylabel("FLOP/s achieved", fontsize=8)
    axes.set_title("Roofline: each program's share of what bandwidth and arithmetic allow", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _named(points: Sequence[Point]) -> list[Point]:
    """The farthest below the roof, as far as their names have room."""
    named: list[Point] = []
    for point in sorted(points, key=lambda point: point.flop_per_s / point.roof):
        if len(named) < _NAMED_POINTS and not any(_collide(point, other) for other in named):
            named.append(point)
    return named


def _collide(point: Point, other: Point) -> bool:
    across, up = _LABEL_DECADES
    x = abs(math.log10(point.intensity / other.intensity))
    y = abs(math.log10(point.flop_per_s / other.flop_per_s))
    return x < across and y < up


def _peaks(rows: Sequence[tuple[str, Verdict]]) -> list[tuple[float, float]]:
    """Each pair of bandwidth and FLOP/s that a point has: one for every precision class."""
    works = [verdict.work for _, verdict in rows if verdict.work is not None]
    pairs = {(work.peak_bytes_per_s, work.peak_flop_per_s) for work in works}
    return sorted((moved, flop) for moved, flop in pairs if moved is not None and flop is not None)


def _title(rows: Sequence[tuple[str, Verdict]], ratios: Sequence[Ratio]) -> str:
    first = rows[0][1]
    where = first.device_name or first.device
    lines = [f"{len(rows)} program{'s' * (len(rows) > 1)} on {where}, size {first.size}, mode {first.mode}"]
    if without := sum(not verdict.ok or not verdict.speedups for _, verdict in rows):
        lines[0] += f"; {without} without a speed-up"
    if first.device == "cpu" and ratios:
        lines.append(table.CPU_NOTE)
    return "\n".join(lines)


def _short(name: str) -> str:
    """The task's folder and the name of the file: what tells programs apart. A dollar would begin a formula."""
    path = Path(name.encode("utf-8", errors="replace").decode())
    return (f"{path.parent.name}/{path.stem}" if path.parent.name else path.stem).replace("$", r"\$")


def _colour(speedup: Interval) -> str:
    """By what the interval says: faster, slower, or neither."""
    if speedup.low > 1.0:
        return FASTER
    return SLOWER if speedup.high < 1.0 else EVEN
