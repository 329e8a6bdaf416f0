"""Verdicts of made-up programs, for tests of what follows from them."""

import pytest

from evaluator.program.identity import sha256
from evaluator.records import EVALUATOR_VERSION, Interval, Mode, Outcome, Rung, Verdict


def make_verdict(program: str = "p", speedup: float | None = 1.5, outcome: Outcome = Outcome.OK, **changes) -> Verdict:
    measured = speedup if outcome is Outcome.OK else None
    fields = {
        "outcome": outcome,
        "rung": None if outcome is Outcome.OK else Rung.CORRECTNESS,
        "message": "",
        "line": None,
        "task": "1_019",
        "size": "cpu",
        "device": "cpu",
        "mode": Mode.QUICK,
        "program_sha256": sha256(program),
        "evaluator_version": EVALUATOR_VERSION,
        "seeds": (1, 2),
        "errors": (),
        "times": {},
        "speedups": {} if measured is None else {"plain": Interval(measured, measured * 0.98, measured * 1.02)},
        "speedup": measured,
        "own_kernel_share": None,
        "peak_bytes": None,
        "floor_us": None,
        "compiler": {},
        "rung_ms": {},
    }
    return Verdict(**{**fields, **changes})


@pytest.fixture
def verdict():
    """Maker of verdicts: verdict(program, speedup, outcome, **other fields)."""
    return make_verdict
