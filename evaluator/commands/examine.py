"""`doctor`: what this machine can judge on, what is missing, and its noise."""

import argparse

from evaluator.judge import doctor
from evaluator.judge.baseline import plain_text
from evaluator.judge.ending import OK, OURS
from evaluator.judge.ladder import Judge
from evaluator.records import Mode
from evaluator.tasks import catalog

# Where the noise of a device is measured: a program of a few milliseconds on the emulator, of 60 us on a large GPU.
_NOISE = (("cpu", "1_001", "cpu"), ("cuda", "1_012", "kb"))


def run(options: argparse.Namespace) -> int:
    for finding in doctor.examine():
        print(f"{finding.name:<14} {finding.seen}" + (f"  -> {finding.cure}" if finding.cure else ""))
    measured = [_print_noise(device, task_id, size) for device, task_id, size in _NOISE]
    return OK if any(measured) else OURS


def _print_noise(device: str, task_id: str, size: str) -> bool:
    """Whether the noise of `device` could be measured."""
    text, reason = plain_text(task_id), doctor.missing_for(device)
    if text is None or reason is not None:
        print(f"noise on {device:<5} not measured: {reason or f'no plain program of {task_id} is installed'}")
        return False
    task = catalog.get(task_id)
    with Judge(device=device, mode=Mode.QUICK) as judge:
        ratios = doctor.noise(lambda: judge.check(text, task, size, plain=text, cases=("plain",)))
    shown = ", ".join(f"{ratio.value:.4f} ({ratio.low:.4f} to {ratio.high:.4f})" for ratio in ratios)
    print(f"noise on {device:<5} {task_id} plain at {size} against itself, quick mode, 99 % intervals: {shown}")
    return True
