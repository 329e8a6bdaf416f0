# task: 1_019
# on a GPU: compile_error or timeout: as its compiler counts
"""An expression so deep that a compiler that recurses runs out of stack."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f) + ''' + "(\n" * 50000 + "0.0f" + ")\n" * 50000 + ''';
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
