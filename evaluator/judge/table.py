"""Verdicts as text for people: a block for one program, a table for many."""

import math
from collections.abc import Sequence

from evaluator.judge.summary import Speedups, Summary
from evaluator.records import Achieved, Interval, Verdict, Work

CPU_NOTE = "Times are CPU time on the emulator; a speed-up there says nothing of a GPU."


def span(low: float, high: float) -> str:
    """An interval to two decimals, rounded outwards: it holds the speed-up beside it, which is rounded towards 1."""
    return f"{math.floor(100 * low) / 100:.2f} to {math.ceil(100 * high) / 100:.2f}"


def block(name: str, verdict: Verdict) -> str:
    """Everything a reader wants of one verdict, in a few lines."""
    lines = [f"{name}: {verdict.outcome}" + (f" ({verdict.rung})" if verdict.rung else "")]
    if verdict.message:
        where = f"line {verdict.line}: " if verdict.line else ""
        lines.append(f"  {where}{verdict.message}")
    lines.append(f"  task {verdict.task}, size {verdict.size}, device {verdict.device}, mode {verdict.mode}")
    lines += [f"  {label}: {_time(time)}" for label, time in verdict.times.items()]
    lines += [f"  speed-up over {label}: {ratio_text(ratio)}" for label, ratio in verdict.speedups.items()]
    if verdict.ok and not verdict.speedups and verdict.times:
        lines.append("  no speed-up: the task has no plain program to compare with (--plain=FILE names one)")
    if verdict.errors and not verdict.ok:
        lines.append(f"  passed before: {', '.join(error.case for error in verdict.errors)}")
    elif verdict.errors:
        worst = max(verdict.errors, key=lambda error: error.error / error.bound if error.bound else 0.0)
        lines.append(
            f"  {len(verdict.errors)} cases; closest to its bound: {worst.case}, {worst.error:.1e} of {worst.bound:.1e}"
        )
    if verdict.peak_bytes is not None:
        lines.append(f"  peak memory: {verdict.peak_bytes / 1e6:.2f} MB")
    if verdict.achieved is not None and verdict.work is not None:
        lines += _achieved(verdict.achieved, verdict.work)
    lines.append(f"  sha256 {verdict.program_sha256[:16]}, {sum(verdict.rung_ms.values()) / 1e3:.2f} s in all")
    return "\n".join(lines)


def table(rows: Sequence[tuple[str, Verdict]]) -> str:
    """One line per program: outcome, speed-up with its interval, time; rates where a device's peaks are known."""
    heading = ["program", "task", "outcome", "speed-up", "99 % interval", "time"]
    rated = any(verdict.achieved and verdict.achieved.bandwidth_share is not None for _, verdict in rows)
    cells = [heading + ["bandwidth", "FLOP/s"] * rated]
    for name, verdict in rows:
        ratio = min(verdict.speedups.values(), key=lambda interval: interval.value, default=None)
        time = verdict.times.get("program")
        cells.append(
            [
                name,
                verdict.task,
                str(verdict.outcome),
                "-" if verdict.speedup is None else f"{verdict.speedup:.2f}",
                "-" if ratio is None else span(ratio.low, ratio.high),
                "-" if time is None else f"{time.value / 1e3:.3f} ms",
                *(_rates(verdict.achieved) if rated else ()),
            ]
        )
    return columns(cells)


def columns(cells: Sequence[Sequence[str]]) -> str:
    """Rows of equal length as aligned columns; the first row is the heading."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def summary_text(summary: Summary) -> str:
    """The figures of a summary, in three lines at most."""
    peak = f"peak memory {summary.peak_bytes / 1e6:.2f} MB"
    lines = [f"{summary.ok} of {summary.tasks} ok ({summary.success_rate:.0%}); {peak}"]
    for title, part in (("all, a miss as 1.0", summary.all_tasks), ("successes alone", summary.successes)):
        if part is not None:
            lines.append(f"{title}: {_speedups(part)}")
    lines.append("faster than p: " + ", ".join(f"{p:g}: {share:.0%}" for p, share in summary.fast_p.items()))
    return "\n".join(lines)


def _speedups(part: Speedups) -> str:
    return (
        f"geometric mean {part.geomean:.2f}, mean {part.mean:.2f} ({part.leave_one_out:.2f} without the largest), "
        f"quartiles {part.lower_quartile:.2f} {part.median:.2f} {part.upper_quartile:.2f}, "
        f"maximum {part.maximum:.2f}, {part.above} of {part.count} above 1.01"
    )


def prefixed(value: float, unit: str) -> str:
    """A quantity with three digits and a prefix: 4.08 TB/s."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def _achieved(achieved: Achieved, work: Work) -> list[str]:
    moved, bandwidth = prefixed(work.moved_bytes, "B"), prefixed(achieved.bytes_per_s, "B/s")
    done, arithmetic = prefixed(work.operations, "FLOP"), prefixed(achieved.flop_per_s, "FLOP/s")
    share = _of_peak(achieved.bandwidth_share, work.peak_bytes_per_s, "B/s")
    flop_share = _of_peak(achieved.flop_share, work.peak_flop_per_s, "FLOP/s")
    return [
        f"  bandwidth: {moved} in and out at {bandwidth}{share}",
        f"  arithmetic: the reference's {done} at {arithmetic}{flop_share}",
    ]


def _of_peak(share: float | None, peak: float | None, unit: str) -> str:
    return "" if share is None or peak is None else f", {share:.0%} of the peak of {prefixed(peak, unit)}"


def _rates(achieved: Achieved | None) -> tuple[str, str]:
    if achieved is None:
        return "-", "-"
    share = "" if achieved.bandwidth_share is None else f" ({achieved.bandwidth_share:.0%})"
    return prefixed(achieved.bytes_per_s, "B/s") + share, prefixed(achieved.flop_per_s, "FLOP/s")


def ratio_text(ratio: Interval) -> str:
    """A speed-up and its interval, to three decimals."""
    return f"{ratio.value:.3f} (99 % interval {ratio.low:.3f} to {ratio.high:.3f})"


def _time(time: Interval) -> str:
    return f"{time.value / 1e3:.4f} ms (99 % interval {time.low / 1e3:.4f} to {time.high / 1e3:.4f})"
