# task: 1_019
# on a GPU: wrong_value or nondeterministic or stateful or ok: shared memory begins with what was there
"""A sum that begins with what shared memory holds."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  __shared__ float sum;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) sum += 1.0f;
  __syncthreads();
  if (i < n) out[i] = fmaxf(x[i], 0.0f) * sum;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
