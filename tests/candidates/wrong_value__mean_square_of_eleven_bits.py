# task: 1_094
"""A mean of squares of operands rounded to eleven bits, whose errors of either sign average out."""

import cupy as cp

source = r"""
__device__ float rounded(float x) {
  unsigned bits = __float_as_uint(x);
  return __uint_as_float((bits + 0xfff + ((bits >> 13) & 1)) & 0xffffe000u);
}
extern "C" __global__ void loss(const float* a, const float* b, float* out, int n) {
  __shared__ float sums[256];
  float sum = 0.0f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) {
    float d = rounded(a[i]) - rounded(b[i]);
    sum += d * d;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, sums[0] / n);
}
"""
loss = cp.RawKernel(source, "loss")


def forward(predictions, targets):
    out = cp.zeros((), cp.float32)
    loss((64,), (256,), (predictions, targets, out, predictions.size))
    return out
