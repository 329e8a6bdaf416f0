"""Peaks of devices against their data sheets."""

import dataclasses

import pytest

from evaluator.devices.cuda import machine, peaks
from evaluator.devices.cuda.machine import Driver, Gpu
from evaluator.devices.cuda.peaks import Peaks

H200 = Gpu("NVIDIA H200", 90, 141 << 30, 1_980_000, 132, 3_201_000, 6016)
A100 = Gpu("NVIDIA A100-SXM4-40GB", 80, 40 << 30, 1_410_000, 108, 1_215_000, 5120)


@pytest.mark.parametrize(
    ("gpu", "precision", "bytes_per_s", "flop_per_s"),
    [
        (H200, "fp32", 4.8e12, 67e12),  # 2.4e12 and 33e12 with one transfer and one operation a clock
        (H200, "tf32", 4.8e12, 535e12),  # 495e12 at the 1,830 MHz of the data sheet
        (A100, "fp32", 1.555e12, 19.5e12),
        (A100, "tf32", 1.555e12, 156e12),
    ],
)
def test_peaks_are_those_of_the_data_sheet(gpu, precision, bytes_per_s, flop_per_s):
    found = peaks.peaks(gpu, precision)
    assert found.bytes_per_s == pytest.approx(bytes_per_s, rel=0.01)
    assert found.flop_per_s == pytest.approx(flop_per_s, rel=0.01)


def test_what_driver_and_tables_do_not_tell_is_none():
    assert peaks.peaks(Gpu("Next", 130, 1 << 37, 2_000_000, 200, 0, 0), "fp32") == Peaks(None, None)
    consumer = dataclasses.replace(H200, architecture=89)
    assert peaks.peaks(consumer, "tf32").flop_per_s is None
    assert peaks.peaks(consumer, "fp32").flop_per_s is not None


def test_the_first_gpu_of_this_machine_counts(monkeypatch):
    monkeypatch.setattr(machine, "driver", lambda: Driver((13, 0), (A100, H200)))
    peaks.of_this_machine.cache_clear()
    try:
        assert peaks.of_this_machine("fp32") == peaks.peaks(A100, "fp32")
    finally:
        peaks.of_this_machine.cache_clear()


def test_a_machine_without_a_driver_has_none(monkeypatch):
    monkeypatch.setattr(machine, "driver", lambda: None)
    peaks.of_this_machine.cache_clear()
    try:
        assert peaks.of_this_machine("fp32") is None
    finally:
        peaks.of_this_machine.cache_clear()
