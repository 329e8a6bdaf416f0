"""Verdicts as text."""

import dataclasses
import pathlib
import runpy

import pytest

from evaluator.judge.table import block, prefixed, span, table
from evaluator.records import Work

CLI = pathlib.Path(__file__).parents[1] / "cli"
verdict = runpy.run_path(str(CLI / "verdicts.py"))["verdict"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.08e12, "4.08 TB"),
        (9.996e11, "1 TB"),  # not 1e+03 GB
        (1.5e9, "1.5 GB"),
        (999_400, "999 kB"),
        (12.0, "12 B"),
        (0.0, "0 B"),
    ],
)
def test_quantities_have_three_digits_and_a_prefix(value, text):
    assert prefixed(value, "B") == text


def test_a_block_has_rates_and_their_shares_of_the_peaks():
    lines = block("a.py", verdict()).splitlines()
    assert "  bandwidth: 400 MB in and out at 4 TB/s, 83% of the peak of 4.8 TB/s" in lines
    assert "  arithmetic: the reference's 10 GFLOP at 100 TFLOP/s, 149% of the peak of 67 TFLOP/s" in lines


def test_a_block_without_peaks_has_rates_alone():
    lines = block("a.py", dataclasses.replace(verdict(), work=Work(400_000, 200_000))).splitlines()
    assert "  bandwidth: 400 kB in and out at 4 GB/s" in lines
    assert "  arithmetic: the reference's 200 kFLOP at 2 GFLOP/s" in lines


def test_a_table_has_rates_where_peaks_are_known():
    old = dataclasses.replace(verdict(), work=None)
    heading, _, first, second = table([("a.py", verdict()), ("b.py", old)]).splitlines()
    assert heading.split()[-2:] == ["bandwidth", "FLOP/s"]
    assert first.split()[-5:] == ["4", "TB/s", "(83%)", "100", "TFLOP/s"]
    assert second.split()[-2:] == ["-", "-"]
    assert "bandwidth" not in table([("b.py", old)])


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(1.9385, 1.9421, "1.93 to 1.95"), (0.96, 0.964, "0.96 to 0.97"), (0.0049, 0.0051, "0.00 to 0.01")],
)
def test_an_interval_is_rounded_outwards(low, high, shown):
    assert span(low, high) == shown
