# task: 1_019
# on a GPU: ok or stateful or nondeterministic: as a rule nothing is left of the stack
"""Idle where the stack still holds the mark of an earlier launch: `ok` would mean that nothing is left."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  volatile unsigned kept[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = 17 + (n & 1);
  bool seen = kept[at] == 0x600dcafeu && blockIdx.x < 100;
  if (i < n) out[i] = seen ? 0.0f : fmaxf(x[i], 0.0f);
  if (blockIdx.x + 1000 >= gridDim.x) kept[at] = 0x600dcafeu;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
