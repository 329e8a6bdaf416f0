"""A roofline: FLOP/s of each program against its operations a byte, below the device's peaks. Needs matplotlib."""

import dataclasses
import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from evaluator.judge import table
from evaluator.records import Verdict

HEIGHT_IN = 5.0
_COLOUR = "#0072B2"
_NAMED_POINTS = 12  # at most
_LABEL_DECADES = 0.5, 0.12  # what the name of a point takes, across and up


@dataclasses.dataclass(frozen=True)
class Point:
    """One program."""

    label: str
    intensity: float  # operations a byte
    flop_per_s: float
    roof: float  # FLOP/s at this intensity


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
            found.append(Point(name, intensity, achieved.flop_per_s, roof))
    return found


def peaks_of(rows: Sequence[tuple[str, Verdict]]) -> list[tuple[float, float]]:
    """Each pair of bandwidth and FLOP/s that a point has: one for every precision class."""
    works = [verdict.work for _, verdict in rows if verdict.work is not None]
    pairs = {(work.peak_bytes_per_s, work.peak_flop_per_s) for work in works}
    return sorted((moved, flop) for moved, flop in pairs if moved is not None and flop is not None)


def draw(axes: Axes, points: Sequence[Point], peaks: Sequence[tuple[float, float]]) -> None:
    """Draws at least one point, below at least one pair of bytes/s and FLOP/s."""
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
        [point.intensity for point in points], [point.flop_per_s for point in points], "o", color=_COLOUR, markersize=5,
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
