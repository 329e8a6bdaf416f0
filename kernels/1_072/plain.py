"""One thread per output; a group is a volume of its own.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, float* out, int inputs, int d, int h, int v, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int down = 2 * h, across = 2 * v;
  x += (size_t)blockIdx.z * inputs * d * h * v;
  w += blockIdx.z % 4 * inputs * gridDim.y * 105;
  float sum = 0.0f;
  for (int k = 0; k < 105; ++k) {
    int z = i / (down * across) + 1 - k / 35;
    int y = i / across % down + 2 - k / 7 % 5;
    int u = i % across + 3 - k % 7;
    if (z < 0 || z >= 2 * d || y < 0 || y >= 2 * h || u < 0 || u >= 2 * v || (z | y | u) % 2) continue;
    for (int c = 0; c < inputs; ++c) {
      sum += w[(c * gridDim.y + blockIdx.y) * 105 + k] * x[((c * d + z / 2) * h + y / 2) * v + u / 2];
    }
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight):
    batch, inputs, d, h, v = x.shape
    outputs = weight.shape[1]
    out = cp.empty((batch, 4 * outputs, 2 * d, 2 * h, 2 * v), cp.float32)
    n = 8 * d * h * v
    conv(((n + 255) // 256, outputs, 4 * batch), (256,), (x, weight, out, inputs // 4, d, h, v, n))
    return out
