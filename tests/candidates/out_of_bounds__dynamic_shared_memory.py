# task: 1_019
# on a GPU: ok or out_of_bounds: shared memory is given out in larger pieces
"""One element behind its dynamic shared memory."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x + 1] = i < n ? x[i] : 0.0f;
  if (i < n) out[i] = fmaxf(tile[threadIdx.x + 1], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size), shared_mem=1024)
    return out
