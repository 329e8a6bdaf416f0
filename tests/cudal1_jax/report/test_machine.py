"""Figures of the machine: in the units that they are said to have."""

import os
from pathlib import Path

from cudal1_jax.report import machine


def test_peak_memory_is_in_bytes_and_no_less_than_what_is_taken_now():
    pages = int(Path("/proc/self/statm").read_text().split()[1])  # resident
    now = pages * os.sysconf("SC_PAGE_SIZE")
    assert 0.99 * now < machine.peak_memory()["memory/host_peak_bytes"] < 100 * now


def test_the_rate_of_a_product_is_that_of_some_machine():
    assert 1e9 < machine.matmul_flops_per_s("float32") < 1e16  # a core of a phone, and more than any device
