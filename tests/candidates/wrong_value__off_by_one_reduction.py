# task: 1_047
"""Leaves out the last term of each sum."""

import cupy as cp

source = r'''
extern "C" __global__ void sum_rows(const float* x, float* out, int middle, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const float* from = x + (size_t)blockIdx.y * middle * columns + column;
  float sum = 0.0f;
  for (int i = 0; i < middle - 1; ++i) sum += from[(size_t)i * columns];
  out[blockIdx.y * columns + column] = sum;
}
'''
sum_rows = cp.RawKernel(source, "sum_rows")


def forward(x):
    batch, middle, columns = x.shape
    out = cp.empty((batch, 1, columns), cp.float32)
    sum_rows(((columns + 127) // 128, batch), (128,), (x, out, middle, columns))
    return out
