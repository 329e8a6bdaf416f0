"""One thread per output element; batch and rows of the first operand are rows of one matrix.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void multiply(const float* a, const float* b, float* out, int rows, int inner, int columns) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= columns) return;
  const float* row = a + (size_t)r * inner;
  float sum = 0.0f;
  for (int i = 0; i < inner; ++i) sum += row[i] * b[(size_t)i * columns + c];
  out[(size_t)r * columns + c] = sum;
}
'''
multiply = cp.RawKernel(source, "multiply")


def forward(a, b):
    batch, height, inner = a.shape
    rows, columns = batch * height, b.shape[1]
    out = cp.empty((batch, height, columns), cp.float32)
    multiply(((columns + 31) // 32, (rows + 7) // 8), (32, 8), (a, b, out, rows, inner, columns))
    return out
