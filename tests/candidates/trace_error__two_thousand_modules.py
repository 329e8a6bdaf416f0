# task: 1_019
"""Two thousand modules, each of which would be compiled for itself."""

import cupy as cp

source = r"""
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
"""
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    for i in range(2000):
        kernel = cp.RawKernel(source + "// " + str(i), "relu")
        kernel(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
