"""Made-up verdicts of a GPU."""

from evaluator.judge.findings import Findings
from evaluator.judge.timing import Pairs, rounded
from evaluator.records import Fault, Mode, Outcome, Rung, Work

SPREAD = (0.98, 0.99, 1.0, 1.0, 1.01, 1.02, 1.03)  # of seven buckets


def verdict(
    times_us=(300.0, 200.0), *, names=("eager", "graph"), program_us=100.0, device="cuda", work=True, fault=None
):
    """Of a program that takes `program_us`, against baselines that take `times_us`."""
    found = Findings(task="1_019", size="kb", device=device, mode=Mode.QUICK, device_name="NVIDIA H200")
    found.program_sha256, found.seeds, found.rung_ms = "ab" * 32, [0], {"timing": 5.0}
    for name, time_us in zip(names, times_us, strict=True):
        pairs = Pairs(tuple(time_us * each for each in SPREAD), (program_us,) * 7)
        found.times.update({name: pairs.reference, "program": pairs.program})
        found.speedups[name] = pairs.speedup
    if found.speedups:
        found.speedup = rounded(min(found.speedups.values(), key=lambda each: each.value))
    if work:  # 400 MB in 100 us: 4 TB/s of 4.8; 10 GFLOP: 100 TFLOP/s
        found.work = Work(400_000_000, 10**10, 4.8e12, 67e12)
    return found.verdict(fault)


def wrong():
    return verdict((), names=(), fault=Fault(Outcome.WRONG_VALUE, Rung.CORRECTNESS, "seen 1, expected 2"))
