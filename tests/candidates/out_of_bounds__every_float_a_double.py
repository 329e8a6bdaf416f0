# task: 1_019
# on a GPU: out_of_bounds or compile_error: the compiler's own headers may need a float
"""A compile option that makes every float a double, so that the arrays are read beyond their end."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu", options=("-Dfloat=double",))


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
