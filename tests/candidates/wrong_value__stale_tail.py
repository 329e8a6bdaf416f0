# task: 1_019
"""The last elements repeat those before them."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i < n - 3 ? i : i - 3], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
