# task: 1_094
"""Sums of blocks that are added to one number without atomics: whole blocks one after another would hide it."""

import cupy as cp

source = r'''
extern "C" __global__ void loss(const float* a, const float* b, float* out, int n) {
  __shared__ double sums[256];
  double sum = 0.0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += (double)(a[i] - b[i]) * (a[i] - b[i]);
  sums[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[0] += (float)(sums[0] / n);
}
'''
loss = cp.RawKernel(source, "loss")


def forward(predictions, targets):
    out = cp.zeros((), cp.float32)
    loss((20,), (256,), (predictions, targets, out, predictions.size))
    return out
