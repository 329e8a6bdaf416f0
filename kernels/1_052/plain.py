"""One thread per output walks its column and keeps the first smallest element.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void argmin(const float* x, long long* out, int length, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) {
    const float* start = x + (size_t)blockIdx.y * length * columns + column;
    float best = start[0];
    int index = 0;
    for (int i = 1; i < length; ++i) {
      float v = start[(size_t)i * columns];
      if (v < best) {
        best = v;
        index = i;
      }
    }
    out[(size_t)blockIdx.y * columns + column] = index;
  }
}
'''
argmin = cp.RawKernel(source, "argmin")


def forward(x):
    batch, length, columns = x.shape
    out = cp.empty((batch, columns), cp.int64)
    argmin(((columns + 255) // 256, batch), (256,), (x, out, length, columns))
    return out
