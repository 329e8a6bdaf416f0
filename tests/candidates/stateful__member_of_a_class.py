# task: 1_019
# on a GPU: stateful or compile_error: CUDA has no such members
"""Counts in a static member of a class."""

import cupy as cp

source = r'''
template <typename T> struct Kept {
  __device__ static inline int calls = 0;
};
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
  if (i == 0) Kept<int>::calls += 1;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
