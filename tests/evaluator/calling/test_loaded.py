"""Programs on arrays of NumPy, PyTorch and CuPy."""

import concurrent.futures
import select
import threading

import numpy as np
import pytest

from evaluator.calling.loaded import load
from evaluator.calling.source import Unverified

from .conftest import forms


@pytest.fixture
def row_sums(made):
    program = made("row_sums")
    return load(program.text, **program.options)


def test_numpy_arrays_go_in_and_come_out(row_sums, numbers):
    x, factor = numbers.normal(size=(8, 32)).astype(np.float32), np.float32([2.0])
    for _ in range(3):
        found = row_sums(x, factor)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, 2 * x.sum(axis=1), rtol=1e-5, atol=1e-5)


def test_results_of_one_call_are_not_those_of_the_next(row_sums):
    one = row_sums(np.ones((8, 32), np.float32), np.float32([1.0]))
    row_sums(np.zeros((8, 32), np.float32), np.float32([1.0]))
    np.testing.assert_array_equal(one, [32.0] * 8)


def test_several_results_are_a_tuple_of_their_dtypes(made, numbers):
    program = made("several_outputs")
    x, n = numbers.normal(size=100).astype(np.float32), np.arange(100, dtype=np.int32)
    twice, count, negative, same = load(program.text, **program.options)(x, n=n)
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_array_equal(count, n.astype(np.int64) + 1)
    np.testing.assert_array_equal(negative, -x)
    np.testing.assert_array_equal(same, x)
    assert not np.shares_memory(same, x)


def test_inputs_stay_as_they_were_given(row_sums, numbers):
    x = numbers.normal(size=(8, 32)).astype(np.float32)
    before = x.copy()
    x.flags.writeable = False
    row_sums(x, np.float32([1.0]))
    np.testing.assert_array_equal(x, before)


@pytest.mark.torch
def test_tensors_go_in_and_come_out(row_sums, made, numbers):
    import torch

    x, factor = torch.from_numpy(numbers.normal(size=(8, 32)).astype(np.float32)), torch.tensor([2.0])
    found = row_sums(x, factor)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, 2 * x.sum(dim=1))
    program = made("several_outputs")
    _, count, _, same = load(program.text, **program.options)(x.reshape(-1)[:100], torch.arange(100).to(torch.int32))
    assert count.dtype == torch.int64
    torch.testing.assert_close(same, x.reshape(-1)[:100])


@pytest.mark.torch
def test_a_tensor_that_wants_a_gradient_is_refused(row_sums):
    import torch

    with pytest.raises((RuntimeError, BufferError), match="require gradient"):
        row_sums(torch.ones(8, 32, requires_grad=True), torch.ones(1))


@pytest.mark.parametrize(
    ("x", "error", "seen"),
    [
        (np.ones((32, 8), np.float32).T, ValueError, "x is not contiguous"),
        (np.ones((8, 33), np.float32), Unverified, r"float32\[8, 32\], and is called with float32\[8, 33\]"),
        (np.ones((8, 32)), Unverified, r"is called with float64\[8, 32\]"),
        (np.ones((8, 32), np.complex64), TypeError, "argument 'x' is of complex64; no program takes that"),
        ([[1.0] * 32] * 8, TypeError, "x is a list; pass arrays of NumPy, CuPy or PyTorch"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(row_sums, x, error, seen):
    with pytest.raises(error, match=seen):
        row_sums(x, np.float32([1.0]))


def test_other_shapes_can_be_allowed(made):
    program = made("row_sums", allow_unverified=True)
    found = load(program.text, **program.options)(np.ones((5, 7), np.float32), np.float32([2.0]))
    np.testing.assert_array_equal(found, [14.0] * 5)


def test_an_array_without_elements_is_an_array(made):
    program = made("several_outputs", allow_unverified=True)
    empty = load(program.text.replace("((size + 63) // 64,)", "(size // 64 + 1,)"), **program.options)
    found = empty(np.empty((0,), np.float32), np.empty((0,), np.int32))
    assert [(array.shape, array.dtype) for array in found] == [
        ((0,), np.float32),
        ((0,), np.int64),
        ((0,), np.float32),
        ((0,), np.float32),
    ]


def test_a_kernel_that_fails_is_an_error_and_the_next_call_works(made):
    program = made("faulty")
    shift, good = load(program.text, **program.options), np.arange(64, dtype=np.float32)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"a program for faulty: out_of_bounds \(line 14\): read at byte 16384"):
            shift(np.full(64, -1.0, np.float32))
        np.testing.assert_array_equal(shift(good), good)


def test_a_kernel_that_never_ends_is_an_error(made):
    from evaluator.records import Limits

    endless = made("faulty", allow_unverified=True)
    text = endless.text.replace("if (i < size)", "while (x[0] < 0.0f) out[0] += 1.0f;\n  if (i < size)")
    shift = load(text, **endless.options, limits=Limits(kernel_s=0.2))
    with pytest.raises(RuntimeError, match=r"timeout: still running after 0.2 s"):
        shift(np.full(64, -1.0, np.float32))
    np.testing.assert_array_equal(shift(np.ones(64, np.float32)), np.ones(64))


def test_a_program_that_does_not_compile_says_where(made):
    from evaluator.records import ProgramFault

    program = made("faulty", allow_unverified=True)
    with pytest.raises(ProgramFault, match=r"kernel text line 4: ('y' was not declared|use of undeclared)") as caught:
        load(program.text.replace("x[x[0]", "x[y[0]"), **program.options)(np.ones(64, np.float32))
    assert caught.value.fault.outcome == "compile_error"


def test_threads_may_call_at_once_and_end(row_sums, numbers):
    """The process behind a program must not end with the thread that called it first."""
    xs, factor = numbers.normal(size=(20, 8, 32)).astype(np.float32), np.float32([1.0])
    first = threading.Thread(target=row_sums, args=(xs[0], factor))
    first.start()
    first.join()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda x: row_sums(x, factor), xs))
    np.testing.assert_allclose(found, xs.sum(axis=2), rtol=1e-5, atol=1e-5)


def test_a_lost_process_is_replaced(row_sums):
    import os
    import signal

    x, factor = np.ones((8, 32), np.float32), np.float32([1.0])
    row_sums(x, factor)
    prepared = row_sums._preparation.of(forms(((8, 32), "float32"), ((1,), "float32")))
    os.kill(prepared._runner.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed the program's process"):
        row_sums(x, factor)
    np.testing.assert_array_equal(row_sums(x, factor), [32.0] * 8)


def test_an_interrupted_call_is_not_answered_by_the_next(made):
    """The process would report the call that nobody waited for while it still works on the next one."""
    program = made("faulty", allow_unverified=True)
    slow = "if (x[0] == 2.0f) for (volatile int k = 0; k < 300000; ++k);\n  if (i < size)"
    shift = load(program.text.replace("if (i < size)", slow), **program.options)
    shift(np.ones(64, np.float32))
    runner = shift._preparation.of(forms(((64,), "float32")))._runner
    expect = runner._expect

    def interrupted(*_):
        select.select([runner._socket], [], [], 10.0)  # its answer is there, but not read
        runner._expect = expect
        raise KeyboardInterrupt

    runner._expect = interrupted
    with pytest.raises(KeyboardInterrupt):
        shift(np.full(64, 3.0, np.float32))
    np.testing.assert_array_equal(shift(np.full(64, 2.0, np.float32)), [2.0] * 64)


def test_a_program_that_is_not_used_any_more_leaves_no_process(made):
    import gc
    import os

    program = made("row_sums")
    loaded = load(program.text, **program.options)
    loaded(np.ones((8, 32), np.float32), np.float32([1.0]))
    pid = loaded._preparation.of(forms(((8, 32), "float32"), ((1,), "float32")))._runner.pid
    os.kill(pid, 0)
    del loaded
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_arrays_of_another_device_are_refused(made):
    program = made("row_sums", "cuda")
    with pytest.raises(ValueError, match="was loaded for cuda, and x lies on cpu"):
        load(program.text, **program.options)(np.ones((8, 32), np.float32), np.float32([1.0]))
