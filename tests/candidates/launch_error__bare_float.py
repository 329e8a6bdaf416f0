# task: 1_019
"""A Python float where the kernel takes a float: CuPy would pass eight bytes."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n, float floor_value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], floor_value);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size, 0.0))
    return out
