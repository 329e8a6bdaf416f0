# task: 1_094
# on a GPU: ok or out_of_bounds or wrong_value or nondeterministic: what lies behind a buffer there may be a small number
"""Adds up four partial sums where there are three: what lies behind the last is taken for a small number."""

import cupy as cp

source = r"""
extern "C" __global__ void parts(const float* a, const float* b, float* partial, int n) {
  __shared__ float s[256];
  float sum = 0.0f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += (a[i] - b[i]) * (a[i] - b[i]);
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = s[0];
}
extern "C" __global__ void whole(const float* partial, float* out, int n) {
  float sum = 0.0f;
  for (int i = 0; i <= 3; ++i) sum += partial[i];
  out[0] = sum / n;
}
"""
parts = cp.RawKernel(source, "parts")
whole = cp.RawKernel(source, "whole")


def forward(predictions, targets):
    partial = cp.empty((3,), cp.float32)
    out = cp.empty((), cp.float32)
    parts((3,), (256,), (predictions, targets, partial, predictions.size))
    whole((1,), (1,), (partial, out, predictions.size))
    return out
