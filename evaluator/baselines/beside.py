"""What the commands that judge show of stored baselines: fields of JSON, lines of a block, summaries."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.baselines.record import Record
from evaluator.baselines.store import WrongFile, current, read
from evaluator.baselines.unpaired import headline, unpaired, widened
from evaluator.judge import verdict_json
from evaluator.judge.summary import summarise
from evaluator.judge.table import columns, ratio_text, summary_text
from evaluator.records import Interval, Verdict
from evaluator.tasks.task import Task


def stored(path: Path, device: str, tasks: Mapping[str, Task]) -> list[Record]:
    """Records of tasks as they are now. WrongFile where there are none, or nothing that can be compared with them."""
    if device == "cpu":
        raise WrongFile(
            "--baselines needs --device=cuda: the emulator's time is not comparable with that of a library on a CPU"
        )
    found = [record for record in current(read(path), tasks) if record.subject.device == device]
    if not found:
        raise WrongFile(
            f"{path} holds no times on {device} of the tasks as they are now; "
            f"`python -m evaluator baselines --device={device} --out={path}` measures them"
        )
    return found


def add_argument(parser: argparse.ArgumentParser) -> None:
    help_text = "stored times of other libraries (`evaluator baselines --out=FILE`) to show speed-ups over, unpaired"
    parser.add_argument("--baselines", type=Path, metavar="FILE", help=help_text)


def to_json(verdict: Verdict, records: Sequence[Record]) -> str:
    """The verdict's line of JSON; where there are records, with `unpaired` and `headline` behind its own fields.

    `verdict_json.from_json` leaves these out: they are what others say of a verdict.
    """
    line = verdict_json.to_json(verdict)
    return json.dumps({**json.loads(line), **_fields(verdict, records)}, allow_nan=False) if records else line


def lines(verdict: Verdict, records: Sequence[Record]) -> str:
    """Behind a verdict's block: each unpaired speed-up and the smallest of all; "" for a verdict without speed-ups."""
    least = headline(verdict, records)
    if least is None:
        return ""
    found = unpaired(verdict, records)
    shown = [
        f"  unpaired speed-up over {name}: {ratio_text(one.speedup)}, {_origin(one.stored)}"
        for name, one in found.items()
    ]
    if not found:
        shown = ["  no unpaired speed-up: nothing stored fits its task, size, device and a time over graph"]
    kind = "paired" if least.paired else "unpaired"
    return "\n".join(
        [*shown, f"  headline, the smallest of all: {ratio_text(least.speedup)} over {least.baseline} ({kind})"]
    )


def table(rows: Sequence[tuple[str, Verdict]], records: Sequence[Record]) -> str:
    """One line per program that has a speed-up: the smallest over all baselines, then each unpaired one."""
    names = list(dict.fromkeys(name for _, verdict in rows for name in unpaired(verdict, records)))
    cells = [("program", "task", "headline", "over", *(f"{name}*" for name in names))]
    for program, verdict in rows:
        least, found = headline(verdict, records), unpaired(verdict, records)
        if least is not None:
            over = least.baseline + ("" if least.paired else "*")
            each = [f"{found[name].speedup.value:.2f}" if name in found else "-" for name in names]
            cells.append((program, verdict.task, f"{least.speedup.value:.2f}", over, *each))
    return columns(cells) + "\n* unpaired: stored time of that baseline, by way of graph"


def summary(verdicts: Sequence[Verdict], records: Sequence[Record]) -> str:
    """As that of the verdicts, each at the smallest speed-up over all its baselines."""
    wide = [widened(verdict, unpaired(verdict, records)) for verdict in verdicts]
    return "smallest over all baselines, stored ones unpaired:\n" + summary_text(summarise(wide))


def _fields(verdict: Verdict, records: Sequence[Record]) -> dict[str, Any]:
    found, least = unpaired(verdict, records), headline(verdict, records)
    each = {
        name: {**_numbers(one.speedup), "clock": one.stored.clock, "date": one.stored.date}
        for name, one in found.items()
    }
    if least is None:
        return {"unpaired": each, "headline": None}
    least_of_all = {"baseline": least.baseline, "paired": least.paired, **_numbers(least.speedup)}
    return {"unpaired": each, "headline": least_of_all}


def _numbers(ratio: Interval) -> dict[str, float | str]:
    """JSON has no infinity: it travels as text, as in a verdict."""
    ends = {"value": ratio.value, "low": ratio.low, "high": ratio.high}
    return {name: value if math.isfinite(value) else repr(value) for name, value in ends.items()}


def _origin(record: Record) -> str:
    return f"stored {record.date[:10]}, timed by {record.clock}"
