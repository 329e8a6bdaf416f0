"""Programs on a GPU's arrays: CuPy's and PyTorch's, on their streams."""

import numpy as np
import pytest

from evaluator.calling.loaded import load

cp = pytest.importorskip("cupy", reason="CuPy is not installed (extra cuda12 or cuda13)")
pytestmark = pytest.mark.gpu


@pytest.fixture
def row_sums(made):
    program = made("row_sums", "cuda")
    return load(program.text, **program.options)


def test_arrays_go_in_and_come_out(row_sums, numbers):
    x = numbers.normal(size=(8, 32)).astype(np.float32)
    for _ in range(3):
        found = row_sums(cp.asarray(x), cp.full((1,), 2.0, cp.float32))
        assert type(found) is cp.ndarray
        np.testing.assert_allclose(cp.asnumpy(found), 2 * x.sum(axis=1), rtol=1e-5, atol=1e-5)


def test_several_results_have_their_dtypes(made, numbers):
    program = made("several_outputs", "cuda")
    x, n = cp.asarray(numbers.normal(size=100), dtype=cp.float32), cp.arange(100, dtype=cp.int32)
    twice, count, negative, same = load(program.text, **program.options)(x, n)
    assert count.dtype == cp.int64
    for seen, wanted in ((twice, 2 * x), (count, n.astype(cp.int64) + 1), (negative, -x), (same, x)):
        np.testing.assert_array_equal(cp.asnumpy(seen), cp.asnumpy(wanted))


def test_calls_on_several_streams_keep_their_temporaries_apart(row_sums, numbers):
    """The sums lie in scratch memory: a call of another stream that had the same would add to them."""
    xs = [cp.asarray(numbers.normal(size=(8, 32)), dtype=cp.float32) for _ in range(200)]
    factor, streams = cp.ones((1,), cp.float32), [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    cp.cuda.Device().synchronize()
    found = []
    for number, x in enumerate(xs):
        with streams[number % len(streams)]:
            found.append(row_sums(x, factor))
    cp.cuda.Device().synchronize()
    for x, sums in zip(xs, found, strict=True):
        np.testing.assert_allclose(cp.asnumpy(sums), cp.asnumpy(x).sum(axis=1), rtol=1e-5, atol=1e-5)


def test_products_of_several_streams_keep_their_workspaces_apart(made, numbers):
    program = made("product", "cuda", allow_unverified=True)
    product = load(program.text.replace("(1,), (64,)", "(4096,), (256,)"), **program.options)
    a, b = (cp.asarray(numbers.normal(size=(1024, 1024)), dtype=cp.float32) for _ in range(2))
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(3)]
    cp.cuda.Device().synchronize()
    found = []
    for number in range(30):
        with streams[number % 3]:
            found.append(product(a, b))
    cp.cuda.Device().synchronize()
    wanted = cp.asnumpy((a.astype(cp.float64) + 1) @ b.astype(cp.float64) - 1)
    for one in found:
        np.testing.assert_allclose(cp.asnumpy(one), wanted, rtol=1e-3, atol=1e-2)


def test_a_call_without_temporaries_can_be_recorded_into_a_graph(made):
    program = made("faulty", "cuda")  # whose x[0] is not negative here
    shift = load(program.text, **program.options)
    x, stream = cp.ones((64,), cp.float32), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        shift(x)  # loads the modules
        stream.synchronize()
        stream.begin_capture()
        found = shift(x)
        graph = stream.end_capture()
        x[...] = 2.0
        graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(cp.asnumpy(found), [2.0] * 64)


def test_a_call_with_temporaries_is_not_recorded(row_sums):
    x, factor, stream = cp.ones((8, 32), cp.float32), cp.ones((1,), cp.float32), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        row_sums(x, factor)
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="takes memory that a recorded graph would not keep"):
            row_sums(x, factor)
        stream.end_capture()


def test_scattered_arrays_are_refused(row_sums):
    with pytest.raises(ValueError, match="x is not contiguous"):
        row_sums(cp.ones((32, 8), cp.float32).T, cp.ones((1,), cp.float32))


def test_arrays_of_the_host_are_refused(row_sums):
    with pytest.raises(ValueError, match="was loaded for cuda, and x lies on cpu"):
        row_sums(np.ones((8, 32), np.float32), np.ones(1, np.float32))


@pytest.mark.torch
def test_tensors_go_in_and_come_out_on_their_stream(row_sums, numbers):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x = torch.from_numpy(numbers.normal(size=(8, 32)).astype(np.float32)).cuda()
            found = row_sums(x * 2, torch.ones(1, device="cuda"))
            torch.testing.assert_close(found, 2 * x.sum(dim=1))
