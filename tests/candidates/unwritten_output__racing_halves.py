# task: 1_019
"""Two launches of which each leaves the other's half, and one element between them."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int from, int to) {
  int i = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    half = x.size // 2
    relu(((half + 255) // 256,), (256,), (x, out, 0, half))
    relu(((half + 255) // 256,), (256,), (x, out, half + 1, x.size))
    return out
