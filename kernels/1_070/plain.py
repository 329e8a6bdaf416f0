"""One thread per output: the sum over input channels and those of 3 x 3 x 3 taps that reach it.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, float* out, int inputs, int d, int h, int v, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int down = h + 2, across = v + 2;
  x += (size_t)blockIdx.z * inputs * d * h * v;
  float sum = 0.0f;
  for (int k = 0; k < 27; ++k) {
    int z = i / (down * across) - k / 9;
    int y = i / across % down - k / 3 % 3;
    int u = i % across - k % 3;
    if (z < 0 || z >= d || y < 0 || y >= h || u < 0 || u >= v) continue;
    for (int c = 0; c < inputs; ++c) sum += w[(c * gridDim.y + blockIdx.y) * 27 + k] * x[((c * d + z) * h + y) * v + u];
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight):
    batch, inputs, d, h, v = x.shape
    outputs = weight.shape[1]
    out = cp.empty((batch, outputs, d + 2, h + 2, v + 2), cp.float32)
    n = out.size // batch // outputs
    conv(((n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, d, h, v, n))
    return out
