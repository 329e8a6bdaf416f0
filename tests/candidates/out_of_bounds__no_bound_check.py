# task: 1_019
"""The last block writes past the end of the output."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = fmaxf(x[i < n ? i : 0], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
