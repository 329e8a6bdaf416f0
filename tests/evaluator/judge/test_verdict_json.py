"""The documented JSON object, both ways."""

import dataclasses
import json

import pytest

from evaluator.judge.baseline import kernels_folder
from evaluator.judge.findings import Findings
from evaluator.judge.verdict_json import from_json, to_json
from evaluator.records import CaseError, Fault, Interval, Mode, Outcome, Rung, Work

FIELDS = """schema outcome rung message line task size device device_name mode program_sha256 evaluator_version seeds
    errors times speedups speedup own_kernel_share peak_bytes floor_us achieved compiler rung_ms""".split()  # noqa: SIM905
ADDED = ("device_name", "achieved")  # since the first verdicts of this schema
BUCKETS = (1.4, 1.45, 1.48, 1.5, 1.52, 1.55, 1.6)


def found():
    return Findings(
        task="1_012",
        size="cpu",
        device="cpu",
        device_name="EPYC",
        mode=Mode.QUICK,
        program_sha256="ab" * 32,
        seeds=[3],
        errors=[CaseError("plain", 9, 1e-7, 2e-6), CaseError("large", 8, float("inf"), 2e-6)],
        times={"program": Interval(10.0, 9.0, 11.0)},
        speedups={"plain": Interval(1.5, 1.4, 1.6, BUCKETS)},
        speedup=1.5,
        own_kernel_share=1.0,
        peak_bytes=4096,
        work=Work(moved_bytes=4000, operations=1000, peak_bytes_per_s=8e8, peak_flop_per_s=None),
        compiler={"registers": None},
        rung_ms={"trace": 1.5},
    )


def test_an_ok_verdict_comes_back_as_it_was():
    verdict = found().verdict(None)
    assert from_json(to_json(verdict)) == verdict
    assert verdict.ok


def test_a_fault_comes_back_as_it_was_and_has_no_score():
    verdict = found().verdict(Fault(Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, 'said "no"\n', line=4))
    again = from_json(to_json(verdict))
    assert again == verdict
    assert (again.outcome, again.rung, again.line, again.speedup) == (Outcome.WRONG_AFTER_TIMING, Rung.RECHECK, 4, None)


def test_the_fields_are_those_documented_on_one_line_of_strict_json():
    text = to_json(found().verdict(None))
    record = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(record) == FIELDS
    assert "\n" not in text
    assert record["times"]["program"] == {"median_us": 10.0, "low_us": 9.0, "high_us": 11.0}
    assert record["speedups"]["plain"] == {"value": 1.5, "low": 1.4, "high": 1.6, "buckets": list(BUCKETS)}


def test_every_outcome_and_rung_travels():
    for outcome in set(Outcome) - {Outcome.OK}:
        for rung in Rung:
            verdict = found().verdict(Fault(outcome, rung, ""))
            assert from_json(to_json(verdict)) == verdict


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 99}', "null", "{"])
def test_what_is_no_verdict_is_refused(text):
    with pytest.raises(ValueError, match="not a verdict"):
        from_json(text)


@pytest.mark.parametrize("field", [field for field in FIELDS[1:] if field not in ADDED])
def test_a_missing_field_is_named(field):
    record = json.loads(to_json(found().verdict(None)))
    del record[field]
    with pytest.raises(ValueError, match=field):
        from_json(json.dumps(record))


def test_a_verdict_from_before_devices_had_names_is_read():
    record = json.loads(to_json(found().verdict(None)))
    del record["device_name"]
    assert from_json(json.dumps(record)) == dataclasses.replace(found().verdict(None), device_name="")


def test_rates_are_the_work_over_the_time_of_the_program():
    achieved = json.loads(to_json(found().verdict(None)))["achieved"]
    # 4,000 bytes in 10 us: 4e8 a second; 4e2 with the time taken for seconds
    assert achieved == {
        "bytes_per_s": pytest.approx(4e8),
        "flop_per_s": pytest.approx(1e8),
        "bandwidth_share": pytest.approx(0.5),
        "flop_share": None,
        "moved_bytes": 4000,
        "operations": 1000,
        "peak_bytes_per_s": 8e8,
        "peak_flop_per_s": None,
    }


def test_what_was_not_timed_has_no_rates():
    untimed = found()
    untimed.times = {}
    verdict = untimed.verdict(Fault(Outcome.WRONG_VALUE, Rung.CORRECTNESS, "seen 1"))
    assert json.loads(to_json(verdict))["achieved"] is None
    assert from_json(to_json(verdict)) == verdict


def test_a_verdict_from_before_rates_and_buckets_is_read():
    record = json.loads(to_json(found().verdict(None)))
    del record["achieved"], record["speedups"]["plain"]["buckets"]
    again = from_json(json.dumps(record))
    assert again.achieved is None
    assert again.speedups == {"plain": Interval(1.5, 1.4, 1.6)}


def test_the_verdicts_beside_the_kernels_are_read():
    paths = sorted(kernels_folder().glob("*/*.json"))
    assert len(paths) > 100
    for path in paths:
        assert from_json(path.read_text(encoding="utf-8")).ok


def test_an_unknown_outcome_is_refused():
    text = to_json(dataclasses.replace(found().verdict(None))).replace('"ok"', '"fine"')
    with pytest.raises(ValueError, match="fine"):
        from_json(text)
