# task: 1_019
"""Takes memory until there is none and does not look."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float* scratch = 0;
  for (int k = 0; k < 64; ++k) scratch = (float*)malloc(1 << 26);
  scratch[0] = 0.0f;
  if (i < n) out[i] = fmaxf(x[i], scratch[0]);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
