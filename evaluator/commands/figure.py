"""The figure of verdicts: the buckets of each speed-up, and a roofline where the device's peaks are known.

Needs matplotlib. Nothing global is touched: no pyplot, no backend.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from evaluator.commands import ratio_chart, roofline
from evaluator.judge import table
from evaluator.records import Verdict

_WIDTH_IN, _MARGIN_IN = 8.0, 1.3


def draw(rows: Sequence[tuple[str, Verdict]]) -> Figure | None:
    """The figure of (name, verdict); None where nothing was timed."""
    rows = [(_short(name), verdict) for name, verdict in rows]
    ratios, points = ratio_chart.ratios_of(rows), roofline.points_of(rows)
    if not ratios and not points:
        return None
    heights = [ratio_chart.height_in(ratios) + _MARGIN_IN] * bool(ratios) + [roofline.HEIGHT_IN] * bool(points)
    figure = Figure(figsize=(_WIDTH_IN, sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    if ratios:
        ratio_chart.draw(axes[0], ratios)
    if points:
        roofline.draw(axes[-1], points, roofline.peaks_of(rows))
    figure.suptitle(_title(rows, has_speedups=bool(ratios)), fontsize=10)
    return figure


def save(figure: Figure, path: Path) -> None:
    """As the suffix of `path` says; text of an SVG stays text."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, dpi=150)


def _title(rows: Sequence[tuple[str, Verdict]], *, has_speedups: bool) -> str:
    first = rows[0][1]
    where = first.device_name or first.device
    lines = [f"{len(rows)} program{'s' * (len(rows) > 1)} on {where}, size {first.size}, mode {first.mode}"]
    if without := sum(not verdict.ok or not verdict.speedups for _, verdict in rows):
        lines[0] += f"; {without} without a speed-up"
    if first.device == "cpu" and has_speedups:
        lines.append(table.CPU_NOTE)
    return "\n".join(lines)


def _short(name: str) -> str:
    """The task's folder and the name of the file: what tells programs apart. A dollar would begin a formula."""
    path = Path(name.encode("utf-8", errors="replace").decode())
    return (f"{path.parent.name}/{path.stem}" if path.parent.name else path.stem).replace("$", r"\$")
