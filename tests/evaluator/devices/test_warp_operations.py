"""Shuffles, votes, matches and reductions, against what CUDA defines for them."""

import numpy as np
import pytest

ORDERS = ["forward", "reverse", "random"]


def kernel(body: str, before: str = "") -> str:
    return f"{before}\n__global__ void k(float* y) {{ int i = threadIdx.x; {body} }}\n"


@pytest.fixture
def lanes(outputs_of, out):
    """Value that each of `block` threads wrote."""

    def run(body, block=64, before="", **launch):
        return outputs_of(kernel(body, before), [out((block,))], block=(block,), **launch)[0]

    return run


I = np.arange(64)


OPERATIONS = [
    ("__shfl_sync(~0u, i, 3)", I // 32 * 32 + 3),
    ("__shfl_sync(~0u, i, 35)", I // 32 * 32 + 3),
    ("__shfl_sync(~0u, i, 1, 8)", I // 8 * 8 + 1),
    ("__shfl_up_sync(~0u, i, 2)", np.where(I % 32 < 2, I, I - 2)),
    ("__shfl_up_sync(~0u, i, 3, 16)", np.where(I % 16 < 3, I, I - 3)),
    ("__shfl_down_sync(~0u, i, 2)", np.where(I % 32 > 29, I, I + 2)),
    ("__shfl_down_sync(~0u, i, 3, 16)", np.where(I % 16 > 12, I, I + 3)),
    ("__shfl_xor_sync(~0u, i, 16)", I ^ 16),
    ("__shfl_xor_sync(~0u, i, 5, 8)", I ^ 5),
    ("__shfl_xor_sync(~0u, i, 8, 8)", np.where(I % 16 >= 8, I - 8, I)),  # sources in later groups: the lane itself
    ("__shfl_sync(~0u, i * 0.25, 5)", (I // 32 * 32 + 5) * 0.25),  # eight bytes
    ("__popc(__ballot_sync(~0u, i % 4 == 0))", 8),
    ("__any_sync(~0u, i == 40)", I >= 32),
    ("__all_sync(~0u, i < 32)", I < 32),
    ("__popc(__match_any_sync(~0u, i / 20))", np.select([I < 20, I < 32, I < 40, I < 60], [20, 12, 8, 20], 4)),
    ("__reduce_add_sync(~0u, i)", np.where(I < 32, 496, 1520)),
    ("__reduce_min_sync(~0u, i - 40)", np.where(I < 32, -40, -8)),
    ("__reduce_max_sync(~0u, i - 40)", np.where(I < 32, -9, 23)),
    ("__reduce_max_sync(~0u, (unsigned)(i - 1)) > 1000u", I < 32),  # unsigned: -1 is the largest
    ("__reduce_and_sync(~0u, (unsigned)i | 64u)", np.where(I < 32, 64, 96)),
    ("__reduce_or_sync(~0u, 1u << (i & 3))", 15),
    ("__reduce_xor_sync(~0u, (unsigned)i)", 0),
]


@pytest.mark.parametrize("order", ORDERS)
def test_operations(outputs_of, out, order):
    lines = "\n".join(f"y[{row} * 64 + i] = {expression};" for row, (expression, _) in enumerate(OPERATIONS))
    (y,) = outputs_of(kernel(lines), [out((len(OPERATIONS), 64))], block=(64,), order=order)
    for row, (expression, expected) in enumerate(OPERATIONS):
        np.testing.assert_array_equal(y[row], np.broadcast_to(expected, 64), err_msg=expression)


def test_match_all_says_whether_all_agree(lanes):
    body = "int p; unsigned m = __match_all_sync(~0u, i / 33, &p); y[i] = p * 100 + __popc(m);"
    assert np.array_equal(lanes(body), np.where(I < 32, 132, 0))


def test_half_warps_in_different_branches(lanes):
    body = """float x = i;
    if ((i & 31) < 16) y[i] = __shfl_down_sync(0xffffu, x, 1, 16);
    else y[i] = __shfl_up_sync(0xffff0000u, x, 1, 16);"""
    half = I % 16
    down, up = np.where(half == 15, I, I + 1), np.where(half == 0, I, I - 1)
    assert np.array_equal(lanes(body), np.where(I % 32 < 16, down, up))


@pytest.mark.parametrize("order", ORDERS)
def test_partial_last_warp_with_a_full_mask(lanes, order):
    y = lanes(
        "float s = 1; for (int o = 16; o; o >>= 1) { float t = __shfl_xor_sync(~0u, s, o);"
        " if ((i ^ o) < 40) s += t; } y[i] = s;",
        block=40,
        order=order,
    )
    assert (y[:32] == 32).all()
    assert (y[32:] == 8).all()


@pytest.mark.parametrize("order", ORDERS)
def test_ended_lanes_are_not_waited_for(lanes, order):
    y = lanes("y[i] = -1; if (i % 2) return; y[i] = __popc(__ballot_sync(~0u, 1));", order=order)
    assert np.array_equal(y, np.where(I % 2, -1, 16))


@pytest.mark.parametrize("order", ORDERS)
def test_active_mask_is_the_set_of_lanes_in_the_same_branch(lanes, order):
    body = "if (i % 32 < 10)\n y[i] = __popc(__activemask());\nelse\n y[i] = 100 + __popc(__activemask());"
    assert np.array_equal(lanes(body, order=order), np.where(I % 32 < 10, 10, 122))


def test_sync_warp_orders_shared_memory(lanes):
    body = "__shared__ int s[64]; s[i] = i; __syncwarp(); y[i] = s[i ^ 1]; __syncwarp(0xffffffff); s[i] = 0;"
    assert np.array_equal(lanes(body), I ^ 1)


def test_warps_that_finish_one_after_another(outputs_of, out):
    # A thread that starts without a switch runs on the stack of the one that ended before it.
    body = "float v = i; for (int j = 0; j < 5; j++) v += __shfl_xor_sync(~0u, v, 1); y[i] = v;"
    (y,) = outputs_of(kernel(body), [out((256,))], block=(256,), grid=(3,))
    i = np.arange(256)
    pair = i + (i ^ 1)
    assert np.array_equal(y, pair * 16)


@pytest.mark.parametrize("order", ORDERS)
def test_block_sum_through_shuffles_and_shared_memory(outputs_of, out, order):
    source = """__device__ float warp_sum(float v) {
      for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
      return v;
    }
    __global__ void k(const float* x, float* y, int n) {
      __shared__ float part[32];
      float s = 0;
      for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];
      s = warp_sum(s);
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
      __syncthreads();
      if (threadIdx.x < 32) {
        s = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) y[blockIdx.x] = s;
      }
    }"""
    x = np.random.default_rng(0).integers(-9, 9, (7, 1000)).astype(np.float32)
    (y,) = outputs_of(source, [x, out((7,)), 1000], grid=(7,), block=(256,), order=order, threads=2)
    assert np.array_equal(y, x.sum(axis=1))
