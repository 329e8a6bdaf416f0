"""One block per row of x: threads share the layer's outputs, then each normalises a group; swish, factor, swish.

Techniques: fusion, block per row, one thread per group
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm_norm_swish(const float* x, const float* w, const float* b, const float* f,
                                           const float* g, const float* h, float* y, int m, int k) {
  x += blockIdx.x * k;
  y += blockIdx.x * m;
  for (int o = threadIdx.x; o < m; o += 256) {
    float v = 0;
    for (int i = 0; i < k; ++i) v += x[i] * w[o * k + i];
    y[o] = v + b[o];
  }
  __syncthreads();
  int size = m / 256, c = threadIdx.x * size;
  float mean = 0, var = 0;
  for (int i = c; i < c + size; ++i) mean += y[i];
  mean /= size;
  for (int i = c; i < c + size; ++i) var += (y[i] - mean) * (y[i] - mean) / size;
  var = rsqrtf(var + 1e-5f);
  for (int i = c; i < c + size; ++i) {
    float v = (y[i] - mean) * var * g[i] + h[i];
    v *= f[i] / (1.0f + expf(-v));
    y[i] = v / (1.0f + expf(-v));
  }
}
'''
gemm_norm_swish = cp.RawKernel(source, "gemm_norm_swish")


def forward(x, f, w, b, g, h):
    n, k = x.shape
    m = b.size
    y = cp.empty((n, m), cp.float32)
    gemm_norm_swish((n,), (256,), (x, w, b, f, g, h, y, m, k))
    return y
