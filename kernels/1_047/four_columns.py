"""Four neighbouring columns per thread.

A row has 4,095 or 415 columns, so float4 loads would be misaligned; four scalar loads side by side use the same cache lines,
give each thread four independent sums, and pay loop and address arithmetic once for four elements. A warp still covers 512
contiguous bytes of a row. The last thread of a row may own fewer columns and takes the slow loop.

Techniques: several items per thread, independent accumulators
"""
import cupy as cp

source = r'''
extern "C" __global__ void sum_four(const float* x, float* out, int length, int columns) {
  int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  const float* start = x + (size_t)blockIdx.y * length * columns + column;
  float* y = out + (size_t)blockIdx.y * columns + column;
  if (column + 3 < columns) {
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
    #pragma unroll 4
    for (int i = 0; i < length; ++i) {
      const float* p = start + (size_t)i * columns;
      a += p[0];
      b += p[1];
      c += p[2];
      d += p[3];
    }
    y[0] = a;
    y[1] = b;
    y[2] = c;
    y[3] = d;
  } else {
    for (int k = 0; column + k < columns; ++k) {
      float sum = 0.0f;
      for (int i = 0; i < length; ++i) sum += start[(size_t)i * columns + k];
      y[k] = sum;
    }
  }
}
'''
sum_four = cp.RawKernel(source, "sum_four")


def forward(x):
    batch, length, columns = x.shape
    out = cp.empty((batch, 1, columns), cp.float32)
    sum_four(((columns + 255) // 256, batch), (64,), (x, out, length, columns))
    return out
