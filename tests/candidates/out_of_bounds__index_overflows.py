# task: 1_019
"""An index whose product does not fit an int, so that it is negative."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int far = (int)(4096u * (unsigned)i) / 4096;
  if (i < n) out[far] = fmaxf(x[far], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
