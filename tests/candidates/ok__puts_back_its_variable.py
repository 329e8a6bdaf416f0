# task: 1_019
"""Uses a variable of its module and leaves it as it was: nothing of it outlives a launch."""

import cupy as cp

source = r'''
__device__ volatile int kept = 0;
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
  if (i == 0) {
    kept = 5;
    kept = 0;
  }
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
