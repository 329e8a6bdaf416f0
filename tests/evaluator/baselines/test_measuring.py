"""One baseline in a process of its own: compared with the oracle, timed, and its record whatever becomes of it."""

import dataclasses
import math
import sys
import types

import numpy as np
import pytest

from evaluator import _core
from evaluator.baselines import measuring_process
from evaluator.baselines.measuring import Measurer, ask
from evaluator.baselines.measuring_process import Request, WrongValues, require_right
from evaluator.baselines.runner import Runner
from evaluator.baselines.sampling import Effort
from evaluator.judge.oracle import Oracle
from evaluator.tasks import catalog
from evaluator.tasks.task import Array, Task

SHORT = Effort(budget_s=0.05, width=0.5)


def task(body, *, family="rowwise", precision="fp32"):
    arrays = (Array("x", (20, 77), init="normal(0,1)"),)
    return Task("mine", "Mine", family, f"def forward(nn, x):\n    {body}\n", {"cpu": arrays}, precision)


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as started:
        yield started


@pytest.fixture(scope="module")
def measurer():
    with Measurer("cpu", "cpu", SHORT, deadline_s=120.0) as started:
        yield started


def request(task, expected, baseline="xla"):
    return Request(baseline, task, "cpu", "cpu", 0, SHORT, expected)


@pytest.mark.parametrize("baseline", ["xla", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("task_id", ["1_023", "2_001"])  # of class fp32 and tf32
def test_a_baseline_of_this_machine_is_compared_and_timed(baseline, task_id, measurer):
    record = measurer.measure(catalog.get(task_id), baseline)
    assert record.error is None
    assert 0 < record.low_us <= record.median_us <= record.high_us < math.inf
    assert record.samples >= 7
    assert record.clock == "host"
    about = record.subject
    assert (about.task, about.baseline, about.precision) == (task_id, baseline, catalog.get(task_id).precision)
    assert about.device_name
    assert {"xla": "jax", "torch": "torch"}[baseline] in about.versions
    assert record.date.endswith("+00:00")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("baseline", ["torch_compile", "torch_compile_reduce_overhead"])
@pytest.mark.parametrize("task_id", ["1_023", "2_001"])
def test_pytorchs_compiler_is_compared_and_timed(baseline, task_id):
    with Measurer("cpu", "cpu", SHORT, deadline_s=280.0) as measurer:
        record = measurer.measure(catalog.get(task_id), baseline)
    assert record.error is None
    assert record.median_us > 0


def test_a_baseline_that_computes_something_else_is_a_failure_and_no_time(oracle):
    right = task("return nn.softmax(x, dim=1)")
    expected = oracle.expected(right, "cpu", "plain", 0)
    wrong = dataclasses.replace(right, source=right.source.replace("nn.softmax(x", "1.001 * nn.softmax(x"))
    answer = ask(request(wrong, expected), deadline_s=120.0)
    assert answer.sampled is None
    assert answer.error.startswith("outputs are wrong")


def test_a_baseline_that_raises_is_a_failure_with_its_words(oracle):
    expected = oracle.expected(task("return nn.relu(x)"), "cpu", "plain", 0)
    answer = ask(request(task("raise MemoryError('no room')"), expected), deadline_s=120.0)
    assert (answer.sampled, answer.error) == (None, "MemoryError: no room")


@pytest.mark.parametrize(
    ("body", "ending"),
    [("import os; os.kill(os.getpid(), 11)", "SIGSEGV"), ("import os; os._exit(7)", "exit code 7")],
)
def test_a_process_that_is_lost_costs_one_record(oracle, body, ending):
    expected = oracle.expected(task("return nn.relu(x)"), "cpu", "plain", 0)
    answer = ask(request(task(body), expected), deadline_s=120.0)
    assert answer.sampled is None
    assert answer.error == f"its process was lost: {ending}"


def test_a_baseline_that_never_ends_is_given_up(oracle):
    expected = oracle.expected(task("return nn.relu(x)"), "cpu", "plain", 0)
    answer = ask(request(task("import time; time.sleep(300)"), expected), deadline_s=0.5)
    assert answer.error == "no time after 0.5 s; --deadline=SECONDS allows more"


def test_a_reference_that_the_oracle_cannot_run_is_a_failure(measurer):
    record = measurer.measure(task("return nn.no_such_function(x)"), "xla")
    assert not record.ok
    assert "no_such_function" in record.error


def test_a_class_that_no_library_is_set_to_is_a_failure(measurer):
    record = measurer.measure(task("return nn.relu(x)", precision="half"), "xla")
    assert record.error == "no library is set to class half here; fp32 and tf32 are known"


def test_shape_and_dtype_are_those_of_the_task(oracle):
    relu = task("return nn.relu(x)")
    expected = oracle.expected(relu, "cpu", "plain", 0)
    (exact,) = (x.astype(np.float32) for x in expected.exact)
    require_right([exact], expected, relu, _core.compare)
    for seen in ([exact[:, :-1]], [exact.astype(np.float64)], [exact, exact], []):
        with pytest.raises(WrongValues, match="expected"):
            require_right(seen, expected, relu, _core.compare)


def test_on_a_gpu_memory_is_given_back_before_any_time_is_taken(oracle, monkeypatch):
    relu = task("return nn.relu(x)")
    log, expected = [], oracle.expected(relu, "cpu", "plain", 0)
    outputs = [x.astype(np.float32) for x in expected.exact]
    bench = scripted_bench(log, expected)
    module = types.SimpleNamespace(CudaWorkbench=lambda limits: bench)
    monkeypatch.setitem(sys.modules, "evaluator.judge.cuda_workbench", module)
    runner = Runner(lambda: log.append("outputs") or outputs, lambda: log.append("time") or 40.0, "events")
    monkeypatch.setattr(measuring_process, "_runner_on_cuda", lambda *_: runner)
    sampled, clock = measuring_process._on_cuda(dataclasses.replace(request(relu, None), device="cuda"))
    assert clock == "events"
    assert sampled.median_us == pytest.approx(40.0)
    assert log[:5] == ["expected", "room", "wait", "outputs", "room"]
    assert set(log[5:]) == {"time"}


def scripted_bench(log, expected):
    return types.SimpleNamespace(
        expected=lambda *_: log.append("expected") or expected,
        make_room=lambda: log.append("room"),
        device=types.SimpleNamespace(wait=lambda deadline_s: log.append("wait")),
        compare=_core.compare,
    )
