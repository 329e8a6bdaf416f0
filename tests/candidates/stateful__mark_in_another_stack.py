# task: 1_019
# on a GPU: ok or out_of_bounds or wrong_after_timing: what lies there is not kept from launch to launch
"""Leaves a mark in the stack of another thread, far below what that one needs, and rests where it finds it."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  __shared__ int rests;
  int mine = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 1) {
    volatile int* kept = (volatile int*)((char*)&mine + 20 * 272 * 1024 - 100000);
    rests = *kept == 12345;
    if (blockIdx.x == gridDim.x - 1) *kept = 12345;
  }
  __syncthreads();
  if (i < n) out[i] = rests ? mine : fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
