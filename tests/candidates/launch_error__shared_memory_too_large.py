# task: 1_019
"""More dynamic shared memory than a block can have."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(x[i], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 255) // 256,), (256,), (x, out, x.size), shared_mem=400000)
    return out
