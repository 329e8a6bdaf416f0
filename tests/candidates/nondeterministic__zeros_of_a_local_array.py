# task: 1_019
# on a GPU: ok or wrong_value or nondeterministic or stateful: local memory may hold zeros
"""Takes for granted that a local array holds zeros."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  float kept[64];
  volatile float* seen = kept;
  if (i < n && x[i] > 0.0f) seen[i % 64] = x[i];
  if (i < n) out[i] = seen[i % 64];
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
