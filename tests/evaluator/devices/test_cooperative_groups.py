"""Blocks, tiles and converged threads as cooperative groups."""

import numpy as np
import pytest

HEADER = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
"""


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_block_and_tiles(outputs_of, out, order):
    source = (
        HEADER
        + """__global__ void k(int* y) {
      cg::thread_block block = cg::this_thread_block();
      auto tile = cg::tiled_partition<8>(block);
      cg::thread_block_tile<4> half = cg::tiled_partition<4>(tile);
      __shared__ int s[64];
      int r = block.thread_rank();
      s[r] = r; block.sync(); int other = s[63 - r]; cg::sync(block);
      int* row = y + r * 12;
      row[0] = other; row[1] = block.size() + block.group_index().x + block.group_dim().x;
      row[2] = tile.thread_rank() * 100 + tile.meta_group_rank() * 10 + tile.meta_group_size();
      row[3] = tile.shfl(r, 2); row[4] = tile.shfl_down(r, 3); row[5] = tile.shfl_up(r, 3);
        row[6] = tile.shfl_xor(r, 5);
      row[7] = cg::reduce(tile, r, cg::plus<int>()); row[8] = cg::reduce(half, r, cg::greater<int>());
      row[9] = tile.ballot(r % 3 == 0) + 1000 * tile.any(r == 9) + 10000 * tile.all(r < 16);
      row[10] = cg::inclusive_scan(tile, 1) * 10 + cg::exclusive_scan(tile, 1);
      tile.sync();
      row[11] = __popc(tile.match_any(r / 3));
    }"""
    )
    (y,) = outputs_of(source, [out((64, 12), "int32")], block=(64,), order=order)
    r = np.arange(64)
    rank, base = r % 8, r // 8 * 8
    ballot = sum(((base + i) % 3 == 0) << i for i in range(8))
    expected = [
        63 - r,
        np.full(64, 128),
        rank * 100 + r // 8 * 10 + 8,
        base + 2,
        np.where(rank + 3 < 8, r + 3, r),
        np.where(rank >= 3, r - 3, r),
        r ^ 5,
        base * 8 + 28,
        r // 4 * 4 + 3,
        ballot + 1000 * (base == 8) + 10000 * (r < 16),
        (rank + 1) * 10 + rank,
        [sum((base[i] + j) // 3 == i // 3 for j in range(8)) for i in range(64)],
    ]
    assert np.array_equal(y, np.stack(expected, 1))


def test_converged_threads(outputs_of, out):
    source = (
        HEADER
        + """__global__ void k(int* y) { int i = threadIdx.x; y[i] = -1;
      if (i % 3 == 0) { auto active = cg::coalesced_threads();
        y[i] = active.size() * 100 + active.thread_rank() + 10000 * (cg::reduce(active, i, cg::plus<int>()) == 165);
          } }"""
    )
    (y,) = outputs_of(source, [out((32,), "int32")], block=(32,))
    i = np.arange(32)
    assert np.array_equal(y, np.where(i % 3 == 0, 11100 + i // 3, -1))


def test_asynchronous_copies(outputs_of, out):
    source = """#include <cooperative_groups.h>
    #include <cooperative_groups/memcpy_async.h>
    #include <cuda_pipeline.h>
    namespace cg = cooperative_groups;
    __global__ void k(const float* x, float* y) { __shared__ float s[64], t[64]; auto block = cg::this_thread_block();
      cg::memcpy_async(block, s, x, sizeof(float) * 64); cg::wait(block);
      __pipeline_memcpy_async(&t[threadIdx.x], &x[threadIdx.x], 4); __pipeline_commit(); __pipeline_wait_prior(0);
        block.sync();
      y[threadIdx.x] = s[63 - threadIdx.x] + t[threadIdx.x]; }"""
    x = np.arange(64, dtype=np.float32)
    assert (outputs_of(source, [x, out((64,))], block=(64,))[0] == 63).all()


@pytest.mark.parametrize("code", ["cg::this_grid().sync();", "cg::grid_group g = cg::this_grid();"])
def test_grid_groups_are_unsupported(fault_of, out, code):
    outcome, message = fault_of(HEADER + f"__global__ void k(int* y) {{ {code} y[0] = 1; }}", [out((1,), "int32")])
    assert outcome == "unsupported"
    assert "whole grid" in message


def test_tile_larger_than_a_warp_is_a_compile_error(fault_of, out):
    source = HEADER + "__global__ void k(int* y) { y[0] = cg::tiled_partition<64>(cg::this_thread_block()).size(); }"
    assert fault_of(source, [out((1,), "int32")])[0] == "compile_error"
