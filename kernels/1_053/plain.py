"""One thread per output walks its column and keeps the smallest element.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void min_middle(const float* x, float* out, int length, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) {
    const float* start = x + (size_t)blockIdx.y * length * columns + column;
    float best = start[0];
    for (int i = 1; i < length; ++i) {
      float v = start[(size_t)i * columns];
      best = v < best ? v : best;
    }
    out[(size_t)blockIdx.y * columns + column] = best;
  }
}
'''
min_middle = cp.RawKernel(source, "min_middle")


def forward(x):
    batch, length, columns = x.shape
    out = cp.empty((batch, columns), cp.float32)
    min_middle(((columns + 255) // 256, batch), (256,), (x, out, length, columns))
    return out
