"""The command line on a GPU: rates against the device's peaks, and `compare` over eager and graph."""

import json
import pathlib

import pytest

from evaluator import _core
from evaluator.commands import command_line
from evaluator.devices.cuda import machine, peaks

pytestmark = pytest.mark.gpu
KERNELS = pathlib.Path(__file__).parents[3] / "kernels" / "1_012"


def lines(capsys, *arguments):
    assert command_line.main([str(each) for each in (*arguments, "--device=cuda", "--mode=quick", "--json")]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_bandwidth_of_a_program_is_a_share_of_the_peak(capsys):
    (verdict,) = lines(capsys, "check", KERNELS / "vectorised.py", "--task=1_012")
    achieved = verdict["achieved"]
    # It reads and writes matrices larger than the cache: no less than a tenth, no more than what the cache may add.
    assert 0.1 < achieved["bandwidth_share"] < 1.5
    assert 0 < achieved["flop_share"] < 1
    assert achieved["bytes_per_s"] == pytest.approx(
        1e6 * achieved["moved_bytes"] / verdict["times"]["program"]["median_us"]
    )


def test_peaks_without_a_context_are_those_of_the_open_device():
    device = _core.CudaDevice(0)
    gpu = machine.driver().gpus[0]
    assert (gpu.memory_clock_khz, gpu.memory_bus_bits) == (device.memory_clock_khz, device.memory_bus_bits)
    found = peaks.peaks(gpu, "fp32")
    assert 1e11 < found.bytes_per_s < 1e14
    assert 1e12 < found.flop_per_s < 1e15


def test_compare_has_both_over_eager_and_graph(capsys):
    first, second = lines(capsys, "compare", KERNELS / "plain.py", KERNELS / "vectorised.py", "--task=1_012")
    assert list(first["speedups"]) == ["eager", "graph"]
    assert list(second["speedups"]) == ["eager", "graph", "plain"]
    for speedup in second["speedups"].values():
        assert len(speedup["buckets"]) == 7
    # Two ratios over the same baseline agree with the paired one, within what two sessions differ by.
    by_graph = second["speedups"]["graph"]["value"] / first["speedups"]["graph"]["value"]
    assert second["speedups"]["plain"]["value"] == pytest.approx(by_graph, rel=0.15)


def test_a_layer_left_out_of_the_gpus_process_is_a_warning_and_no_fault(capsys):
    (verdict,) = lines(capsys, "check", KERNELS / "plain.py", "--task=1_012", "--gpu-confinement=rlimits,landlock")
    assert verdict["outcome"] == "ok"
