# task: 1_038
# on a GPU: ok or out_of_bounds: the same bytes may lie behind both arrays
"""Copies two elements too many, from behind its input to behind its temporary, where the same bytes may lie."""

import cupy as cp

source = r"""
extern "C" __global__ void copy(const float* x, float* t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n + 2) t[i] = x[i];
}
extern "C" __global__ void l1_norm(const float* x, float* y, int columns) {
  __shared__ float s[256];
  size_t row = (size_t)blockIdx.x * columns;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 256) sum += fabsf(x[row + i]);
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  float mean = s[0] / columns;
  for (int i = threadIdx.x; i < columns; i += 256) y[row + i] = x[row + i] / mean;
}
"""
copy = cp.RawKernel(source, "copy")
l1_norm = cp.RawKernel(source, "l1_norm")


def forward(x):
    rows, columns = x.shape
    t = cp.empty(x.shape, cp.float32)
    y = cp.empty(x.shape, cp.float32)
    copy(((x.size + 257) // 256,), (256,), (x, t, x.size))
    l1_norm((rows,), (256,), (t, y, columns))
    return y
