"""One thread per output: the sum over channels and the taps that reach it.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, float* out, int inputs, int d, int h, int v, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int down = 2 * h + 1, across = 2 * v + 1;
  x += (size_t)blockIdx.z * inputs * d * h * v;
  float sum = 0.0f;
  for (int k = 0; k < 27; ++k) {
    int z = i / (down * across) + 1 - k / 9 * 2;
    int y = i / across % down + 1 - k / 3 % 3 * 2;
    int u = i % across + 1 - k % 3 * 2;
    if (z < 0 || z >= 2 * d || y < 0 || y >= 2 * h || u < 0 || u >= 2 * v || (z | y | u) % 2) continue;
    for (int c = 0; c < inputs; ++c) {
      sum += w[(c * gridDim.y + blockIdx.y) * 27 + k] * x[((c * d + z / 2) * h + y / 2) * v + u / 2];
    }
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight):
    batch, inputs, d, h, v = x.shape
    outputs = weight.shape[1]
    out = cp.empty((batch, outputs, 2 * d + 1, 2 * h + 1, 2 * v + 1), cp.float32)
    n = out.size // batch // outputs
    conv(((n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, d, h, v, n))
    return out
