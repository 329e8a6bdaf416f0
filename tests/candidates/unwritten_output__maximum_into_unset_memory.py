# task: 1_019
# on a GPU: unwritten_output or wrong_value
"""A maximum by atomics into memory that nobody set, read as a number."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n) atomicMax((int*)out + i, __float_as_int(fmaxf(x[i], 0.0f)));
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
