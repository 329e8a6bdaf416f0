# task: 1_049
# only: negated
"""A maximum that begins with zero, right wherever one element is positive."""

import cupy as cp

source = r'''
extern "C" __global__ void fold(const float* x, float* out, int middle, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const float* from = x + (size_t)blockIdx.y * middle * columns + column;
  float top = 0.0f;
  for (int k = 0; k < middle; ++k) top = fmaxf(top, from[(size_t)k * columns]);
  out[blockIdx.y * columns + column] = top;
}
'''
module = cp.RawModule(code=source)
fold = module.get_function("fold")


def forward(x):
    batch, middle, columns = x.shape
    out = cp.empty((batch, columns), cp.float32)
    fold(((columns + 127) // 128, batch), (128,), (x, out, middle, columns))
    return out
