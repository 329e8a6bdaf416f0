"""What a task asks of its device, whatever the program does."""

import dataclasses
import logging

import pytest

from evaluator.devices.cuda import peaks
from evaluator.devices.cuda.peaks import Peaks
from evaluator.judge.ladder import Judge
from evaluator.judge.work import work_of
from evaluator.records import Work
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task

RELU = "def forward(nn, x):\n    return nn.relu(x)\n"
TASK = Task(id="relu", name="relu", family="elementwise", source=RELU, sizes={"cpu": (Array("x", (5, 4)),)})


def test_inputs_and_outputs_are_moved_once():
    assert work_of(TASK, "cpu", "cpu") == Work(moved_bytes=160, operations=20)


def test_a_degenerate_task_moves_its_outputs_alone():
    task = dataclasses.replace(TASK, degenerate="all zeros")
    assert work_of(task, "cpu", "cpu").moved_bytes == 80
    elsewhere = dataclasses.replace(task, degenerate_sizes=("kb",))
    assert work_of(elsewhere, "cpu", "cpu").moved_bytes == 160


def test_a_gpu_brings_its_peaks_at_the_class_of_the_task(monkeypatch):
    monkeypatch.setattr(
        peaks, "of_this_machine", lambda precision: Peaks(1e12, {"fp32": 1e13, "tf32": 1e14}[precision])
    )
    assert work_of(TASK, "cpu", "cuda") == Work(160, 20, 1e12, 1e13)
    assert work_of(dataclasses.replace(TASK, precision="tf32"), "cpu", "cuda").peak_flop_per_s == 1e14
    assert work_of(TASK, "cpu", "cpu").peak_bytes_per_s is None


def test_the_traffic_of_relu_at_kb_is_that_of_its_floor():
    # 12.88 GB; half of it if the outputs were left out
    assert work_of(catalog.get("1_019"), "kb", "cpu").moved_bytes == 2 * 4 * 4096 * 393216


def test_a_reference_that_cannot_be_counted_costs_the_figure_alone(caplog):
    task = dataclasses.replace(TASK, source="def forward(nn, x):\n    return nn.relu(x.astype(float))\n")
    with caplog.at_level(logging.WARNING):
        assert work_of(task, "cpu", "cpu") is None
    assert "operations of task relu cannot be counted" in caplog.text


@pytest.mark.parametrize("timing", [True, False])
def test_a_verdict_has_rates_where_it_has_a_time(timing):
    program = PROGRAM
    with Judge() as judge:
        verdict = judge.check(program, TASK, timing=timing, cases=("plain",))
    assert verdict.ok, verdict.message
    if not timing:
        assert verdict.achieved is None
        return
    assert verdict.achieved.bytes_per_s == pytest.approx(160 / (1e-6 * verdict.times["program"].value))
    assert verdict.achieved.bandwidth_share is None


PROGRAM = '''
import cupy as cp

source = r"""
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
"""
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu((1,), (32,), (x, out, x.size))
    return out
'''
