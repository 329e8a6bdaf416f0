"""Launches in a random order run in two halves that see nothing of each other, so that races of updates show."""

import numpy as np
import pytest

N = 1000


def sums(update: str, before: str = "", grid=(4,), block=(64,)):
    """A kernel in which all add to y[0], which begins as NaN; and its launch."""
    source = f"""{before}
    __global__ void k(const float* x, float* y, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      {update}
    }}"""
    return source, {"grid": grid, "block": block}


RACES = {
    "threads of all blocks": ("if (y[0] != y[0]) y[0] = 0; y[0] += 1;", "", (4,), (64,)),
    "threads of one block": ("if (y[0] != y[0]) y[0] = 0; y[0] += 1;", "", (1,), (64,)),
    "blocks of one thread": ("if (y[0] != y[0]) y[0] = 0; y[0] += 1;", "", (64,), (1,)),
    "blocks with barriers": (
        "__syncthreads(); if (threadIdx.x == 0) { if (y[0] != y[0]) y[0] = 0; y[0] += blockDim.x; }",
        "",
        (16,),
        (16,),
    ),
    "blocks with shuffles": (
        "float v = __shfl_sync(0xffffffff, 1.0f, 0); if (i % 32 == 0) { if (y[0] != y[0]) y[0] = 0; y[0] += 32 * v; }",
        "",
        (8,),
        (32,),
    ),
    "variable of the module": ("total += 1; y[0] = total; total = total;", "__device__ int total;", (4,), (64,)),
}


@pytest.mark.parametrize(("update", "before", "grid", "block"), RACES.values(), ids=RACES.keys())
def test_an_update_without_an_atomic_loses_the_other_half(run_kernel, out, update, before, grid, block):
    source, launch = sums(update, before, grid, block)
    x = np.ones(N, np.float32)
    forward = run_kernel(source, [x, out((1,)), N], **launch).outputs[0][0]
    halves = run_kernel(source, [x, out((1,)), N], order="random", seed=3, **launch).outputs[0][0]
    assert forward == grid[0] * block[0]
    assert abs(halves) < forward * 0.75 or np.isnan(halves)  # bytes of both halves may be mixed


HONEST = {
    "own elements": "if (i < n) y[i] = 2 * x[i];",
    "own elements again": "if (i < n) { y[i] = x[i]; y[i] = y[i] + x[i]; }",
    "one value by all": "if (i < n) y[i] = 2 * x[i]; y[n] = 7;",
    "barriers": """__shared__ float s[64]; s[threadIdx.x] = i < n ? x[i] : 0; __syncthreads();
      if (i < n) y[i] = 2 * s[threadIdx.x];""",
    "a barrier in some blocks": """__shared__ float s[64]; if (i < n) y[i] = 2 * x[i];
      if (blockIdx.x == 9) { __syncthreads(); if (i < n) y[i] = 2 * x[i]; }""",
    "atomics": "if (i < n) { y[i] = 2 * x[i]; atomicAdd(&count, 1u); } if (i == 0) count = 0;",
    "a lock": """if (i < n) y[i] = 2 * x[i]; while (atomicCAS(&count, 0u, 1u) != 0u) {} __threadfence();
      atomicExch(&count, 0u);""",
    "heap": "float* p = (float*)malloc(4); if (i < n) { *p = x[i]; y[i] = 2 * *p; } free(p);",
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST.keys())
def test_threads_that_do_not_depend_on_one_another_give_the_same_in_halves(run_kernel, out, body):
    source = f"""__device__ unsigned count; __global__ void k(const float* x, float* y, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i == 0) y[n] = 7;
      {body}
    }}"""
    x = np.random.default_rng(1).standard_normal(N).astype(np.float32)
    report = run_kernel(source, [x, out((N + 1,)), N], order="random", seed=5, grid=(16,), block=(64,))
    assert report.unwritten == (0,)
    assert np.array_equal(report.outputs[0], np.append(2 * x, np.float32(7)))
