"""A verdict as the documented JSON object, both ways."""

import dataclasses
import json
import math
from typing import Any

from evaluator.records import VERDICT_SCHEMA, CaseError, Interval, Mode, Outcome, Rung, Verdict, Work


def to_json(verdict: Verdict) -> str:
    """One line of JSON with the fields that docs/protocol.md documents, in that order."""
    record = {
        "schema": verdict.schema,
        "outcome": verdict.outcome,
        "rung": verdict.rung,
        "message": verdict.message,
        "line": verdict.line,
        "task": verdict.task,
        "size": verdict.size,
        "device": verdict.device,
        "device_name": verdict.device_name,
        "mode": verdict.mode,
        "program_sha256": verdict.program_sha256,
        "evaluator_version": verdict.evaluator_version,
        "seeds": list(verdict.seeds),
        "errors": [
            {"case": e.case, "seed": e.seed, "error": _number(e.error), "bound": _number(e.bound)}
            for e in verdict.errors
        ],
        "times": {name: _time(time) for name, time in verdict.times.items()},
        "speedups": {name: _speedup(speedup) for name, speedup in verdict.speedups.items()},
        "speedup": verdict.speedup,
        "own_kernel_share": verdict.own_kernel_share,
        "peak_bytes": verdict.peak_bytes,
        "floor_us": verdict.floor_us,
        "achieved": _achieved(verdict),
        "compiler": dict(verdict.compiler),
        "rung_ms": dict(verdict.rung_ms),
    }
    return json.dumps(record, allow_nan=False)


def from_json(text: str) -> Verdict:
    """The verdict that `to_json` wrote. ValueError, naming what is wrong, for anything else."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not a verdict: {error}") from error
    if not isinstance(record, dict) or record.get("schema") != VERDICT_SCHEMA:
        seen = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise ValueError(f"not a verdict of schema {VERDICT_SCHEMA}: seen {seen!r}; judge the program again")
    try:
        return _verdict(record)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"not a verdict: field {error} is missing or of the wrong kind; judge the program again"
        ) from error


def _verdict(record: dict[str, Any]) -> Verdict:
    return Verdict(
        outcome=Outcome(record["outcome"]),
        rung=None if record["rung"] is None else Rung(record["rung"]),
        message=record["message"],
        line=record["line"],
        task=record["task"],
        size=record["size"],
        device=record["device"],
        device_name=record.get("device_name", ""),  # verdicts of older versions do not say
        mode=Mode(record["mode"]),
        program_sha256=record["program_sha256"],
        evaluator_version=record["evaluator_version"],
        seeds=tuple(record["seeds"]),
        errors=tuple(
            CaseError(case=e["case"], seed=e["seed"], error=float(e["error"]), bound=float(e["bound"]))
            for e in record["errors"]
        ),
        times={
            name: Interval(value=float(t["median_us"]), low=float(t["low_us"]), high=float(t["high_us"]))
            for name, t in record["times"].items()
        },
        speedups={
            name: Interval(float(s["value"]), float(s["low"]), float(s["high"]), tuple(s.get("buckets", ())))
            for name, s in record["speedups"].items()
        },
        speedup=record["speedup"],
        own_kernel_share=record["own_kernel_share"],
        peak_bytes=record["peak_bytes"],
        floor_us=record["floor_us"],
        work=_work(record.get("achieved")),  # verdicts of older versions do not say
        compiler=record["compiler"],
        rung_ms=record["rung_ms"],
        schema=record["schema"],
    )


def _number(value: float) -> float | str:
    """JSON has no infinity: it travels as text, which `float` reads."""
    return value if math.isfinite(value) else repr(value)


def _time(time: Interval) -> dict[str, float | str]:
    return {"median_us": _number(time.value), "low_us": _number(time.low), "high_us": _number(time.high)}


def _speedup(speedup: Interval) -> dict[str, float | str | list[float]]:
    ends = {"value": _number(speedup.value), "low": _number(speedup.low), "high": _number(speedup.high)}
    return {**ends, "buckets": list(speedup.buckets)}


def _achieved(verdict: Verdict) -> dict[str, int | float | None] | None:
    """The rates, and the work and peaks that they are made of."""
    return None if verdict.achieved is None else {**vars(verdict.achieved), **vars(verdict.work)}


def _work(achieved: dict[str, Any] | None) -> Work | None:
    """Without the rates, which follow from it."""
    return (
        None if achieved is None else Work(**{field.name: achieved[field.name] for field in dataclasses.fields(Work)})
    )
