# task: 1_019
"""Right shape in another type."""

import cupy as cp

source = r'''
#include <cuda_fp16.h>
extern "C" __global__ void apply(const float* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2half(fmaxf(x[i], 0.0f));
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float16)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
