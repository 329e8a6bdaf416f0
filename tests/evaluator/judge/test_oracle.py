"""The oracle: float64 values from a child that may be lost and comes back."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from evaluator import _core
from evaluator.judge.expected import evaluate
from evaluator.judge.oracle import Oracle, OracleError
from evaluator.tasks.task import Array, Task


def task_of(source, *arrays, task_id="t"):
    text = "def forward(nn, " + ", ".join(array.argument for array in arrays) + f"):\n    return {source}\n"
    return Task(id=task_id, name=task_id, family="chain", source=text, sizes={"cpu": tuple(arrays)})


MATMUL = task_of("nn.matmul(a, b)", Array("a", (5, 40)), Array("b", (40, 3)))


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as started:
        yield started


def test_exact_values_are_float64_of_the_same_inputs(oracle):
    found = oracle.expected(MATMUL, "cpu", "plain", 1)
    a, b = (x.astype(np.float64) for x in found.inputs)
    np.testing.assert_allclose(found.exact[0], a @ b, rtol=1e-14)
    (accuracy,) = found.accuracies
    assert accuracy.dtype == "float32"
    assert 0 < accuracy.norm_error < 1e-6


def test_outputs_are_known_without_running(oracle):
    big = Task(
        id="big",
        name="big",
        family="x",
        source=MATMUL.source,
        sizes={"kb": (Array("a", (10**5, 10**5)), Array("b", (10**5, 9)))},
    )
    assert oracle.outputs(big, "kb") == (((10**5, 9), "float32"),)
    assert oracle.outputs(task_of("nn.argmax(x, dim=1)", Array("x", (4, 5))), "cpu") == (((4,), "int64"),)


def test_tasks_that_differ_in_their_precision_class_alone_have_answers_of_their_own(oracle):
    coarse = dataclasses.replace(MATMUL, precision="tf32")
    fine, rounded = (oracle.expected(task, "cpu", "plain", 7).accuracies[0] for task in (MATMUL, coarse))
    assert (fine.operand_norm_error, rounded.operand_norm_error > 1e-5) == (0.0, True)


def test_answers_are_kept_and_cannot_be_written(oracle):
    first = oracle.expected(MATMUL, "cpu", "plain", 2)
    assert oracle.expected(MATMUL, "cpu", "plain", 2) is first
    with pytest.raises(ValueError, match="read-only"):
        first.exact[0][0, 0] = 1


def test_answers_that_nobody_asks_for_again_take_no_room(oracle):
    first = oracle.expected(MATMUL, "cpu", "plain", 8, once=True)
    again = oracle.expected(MATMUL, "cpu", "plain", 8)
    assert again is not first
    assert again.accuracies == first.accuracies


def test_tasks_that_share_an_id_are_kept_apart(oracle):
    other = task_of("nn.matmul(a, b) + 1", *MATMUL.sizes["cpu"])
    assert other.id == MATMUL.id
    one, two = (oracle.expected(task, "cpu", "plain", 3).exact[0] for task in (MATMUL, other))
    np.testing.assert_allclose(one + 1, two)


def test_memory_is_bounded():
    with Oracle(cache_bytes=30_000) as small:
        task = task_of("nn.relu(x)", Array("x", (1000,)))  # 4 + 8 kB an answer
        first = small.expected(task, "cpu", "plain", 0)
        for seed in range(1, 4):
            small.expected(task, "cpu", "plain", seed)
        assert small.expected(task, "cpu", "plain", 3) is small.expected(task, "cpu", "plain", 3)
        assert small.expected(task, "cpu", "plain", 0) is not first


@pytest.mark.parametrize(
    ("source", "due"),
    [
        ("nn.matmul(a, b)", True),
        ("nn.sum(a, dim=1)", True),
        ("nn.cumsum(a, dim=1)", True),
        ("nn.tanh(a)", False),  # 0 and 1 by saturation: equality would be too much to ask of an approximation
        ("nn.mean(a, dim=1)", False),  # no integers
        ("nn.matmul(a * 100000, b)", False),  # sums beyond 2**24 depend on their order
    ],
)
def test_equality_is_due_for_linear_tasks_on_small_integers_only(oracle, source, due):
    assert oracle.expected(task_of(source, *MATMUL.sizes["cpu"]), "cpu", "integers", 1).sums_exact is due
    assert oracle.expected(task_of(source, *MATMUL.sizes["cpu"]), "cpu", "plain", 1).sums_exact is False


@pytest.mark.parametrize("power", [1, 2])
def test_whether_a_reference_is_affine_may_be_asked_of_fewer_elements(power):
    """The answer, a dozen arrays in float64, is then as small as they are."""
    sizes = []

    def forward(arrays):
        sizes.append(arrays[0].size)
        return [arrays[0] ** power]

    inputs, fewer = [np.arange(-50.0, 50.0, dtype=np.float32)], [np.arange(-3.0, 4.0, dtype=np.float32)]
    found = evaluate(inputs, forward, _core.compare, integral=True, smaller=lambda: fewer)
    assert found.sums_exact is (power == 1)
    assert sizes[:7] == [100, 100, 100, 7, 7, 7, 7]


def test_a_case_on_which_the_reference_overflows_is_not_usable(oracle):
    x = Array("x", (4, 30))
    assert not oracle.expected(task_of("nn.log(nn.sum(nn.exp(x * 0.5), dim=1))", x), "cpu", "large", 1).usable
    assert oracle.expected(task_of("nn.logsumexp(x, dim=1)", x), "cpu", "large", 1).usable
    assert oracle.expected(task_of("nn.exp(x)", x), "cpu", "large", 1).usable  # infinity is the right float32 answer


def test_a_reference_that_fails_is_named(oracle):
    with pytest.raises(OracleError, match="reference of task broken failed at size cpu"):
        oracle.expected(task_of("nn.matmul(x, x)", Array("x", (2, 3)), task_id="broken"), "cpu", "plain", 0)


def test_a_lost_child_is_replaced():
    with Oracle() as lost:
        lost.expected(MATMUL, "cpu", "plain", 1)
        os.kill(lost._child.pid, signal.SIGKILL)
        lost._child._process.wait()
        assert lost.expected(MATMUL, "cpu", "plain", 9).exact[0].shape == (5, 3)


def test_an_answer_that_never_comes_is_an_error_and_the_next_one_works():
    with Oracle(deadline_s=0.0) as impatient:
        with pytest.raises(OracleError, match="took longer than 0 s"):
            impatient.expected(MATMUL, "cpu", "plain", 1)
        impatient._deadline_s = 60.0
        assert impatient.expected(MATMUL, "cpu", "plain", 1).exact[0].shape == (5, 3)


def test_the_child_ends_with_its_parent():
    script = textwrap.dedent("""
        import os, signal
        from evaluator.judge.oracle import Oracle

        oracle = Oracle()  # no guard: the child does not import this script
        oracle.start()
        print(oracle._child.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    parent = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    pid = int(parent.stdout)
    deadline = time.monotonic() + 30.0
    while _running(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _running(pid), f"the oracle's process {pid} outlived its parent by 30 s"


def _running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
