# task: 1_019
# on a GPU: ok or wrong_value or nondeterministic or stateful: what lies there may be zeros
"""Takes for granted that memory of device malloc holds zeros, and writes only what is above."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;

  __shared__ float* block;
  if (threadIdx.x == 0) block = (float*)malloc(256 * sizeof(float));
  __syncthreads();
  if (i < n && x[i] > 0.0f) block[threadIdx.x] = x[i];
  if (i < n) out[i] = block[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) free(block);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
