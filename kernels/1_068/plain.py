"""One thread per output: the sum over input channels and those of 3 x 5 x 5 taps that reach it.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(const float* x, const float* w, float* out, int inputs, int d, int h, int v, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int down = h + 4, across = v + 4;
  x += (size_t)blockIdx.z * inputs * d * h * v;
  float sum = 0.0f;
  for (int k = 0; k < 75; ++k) {
    int z = i / (down * across) - k / 25;
    int y = i / across % down - k / 5 % 5;
    int u = i % across - k % 5;
    if (z < 0 || z >= d || y < 0 || y >= h || u < 0 || u >= v) continue;
    for (int c = 0; c < inputs; ++c) sum += w[(c * gridDim.y + blockIdx.y) * 75 + k] * x[((c * d + z) * h + y) * v + u];
  }
  out[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * n + i] = sum;
}
'''
conv = cp.RawKernel(source, "conv")


def forward(x, weight):
    batch, inputs, d, h, v = x.shape
    outputs = weight.shape[1]
    out = cp.empty((batch, outputs, d + 2, h + 4, v + 4), cp.float32)
    n = out.size // batch // outputs
    conv(((n + 255) // 256, outputs, batch), (256,), (x, weight, out, inputs, d, h, v, n))
    return out
