"""A block per cluster for assignments and norm, with sums in double since a shift of a cluster's mean changes all its
shares; a thread per row for the softmax, ghosts included; a thread per image and cluster for residuals and norms.

Techniques: block per row, one thread per row, shared-memory atomics
"""
import cupy as cp

source = r'''
#define EACH for (int r = threadIdx.x; r < n; r += 256)

extern "C" __global__ void assign(float* x, float* w, float* g, float* h, float* a, int n, int D) {
  __shared__ double t[2];
  t[0] = t[1] = 0;
  __syncthreads();
  int c = blockIdx.x, K = gridDim.x;
  double sum = 0, var = 0;
  EACH {
    float v = 0;
    for (int i = 0; i < D; ++i) v += x[r * D + i] * w[i * K + c];
    a[r * K + c] = v;
    sum += v;
  }
  atomicAdd(t, sum / n);
  __syncthreads();
  EACH var += (a[r * K + c] - t[0]) * (a[r * K + c] - t[0]);
  atomicAdd(t + 1, var / n);
  __syncthreads();
  EACH a[r * K + c] = (a[r * K + c] - t[0]) * rsqrt(t[1] + 1e-5) * g[c] + h[c];
}

extern "C" __global__ void softmax(float* a, int n, int K) {
  int r = blockIdx.x * 64 + threadIdx.x;
  if (r >= n) return;
  a += r * K;
  float top = a[0], sum = 0;
  for (int i = 1; i < K; ++i) top = fmaxf(top, a[i]);
  for (int i = 0; i < K; ++i) sum += expf(a[i] - top);
  for (int i = 0; i < K; ++i) a[i] = expf(a[i] - top) / sum;
}

extern "C" __global__ void residuals(float* x, float* a, float* centres, float* y, int T, int D, int K, int kept) {
  __shared__ float part[32];
  int k = threadIdx.x;
  x += blockIdx.x * T * D;
  a += blockIdx.x * T * K;
  y += blockIdx.x * D * kept;
  float squares = 0, all = 0;
  for (int d = 0; d < D; ++d) {
    float v = 0;
    for (int t = 0; t < T; ++t) v += a[t * K + k] * (x[t * D + d] - centres[d * kept + k]);
    y[d * kept + k] = v;
    squares += v * v;
  }
  float norm = fmaxf(sqrtf(squares), 1e-12f);
  part[k] = squares / norm / norm;
  __syncthreads();
  for (int i = 0; i < kept; ++i) all += part[i];
  norm *= fmaxf(sqrtf(all), 1e-12f);
  for (int d = 0; d < D; ++d) y[d * kept + k] /= norm;
}
'''
assign = cp.RawKernel(source, "assign")
softmax = cp.RawKernel(source, "softmax")
residuals = cp.RawKernel(source, "residuals")


def forward(x, clusters, centres, g, h):
    n, t, d = x.shape
    k, kept = clusters.shape[1], centres.shape[2]
    a = cp.empty((n * t, k), cp.float32)
    assign((k,), (256,), (x, clusters, g, h, a, n * t, d))
    softmax((n * t // 64 + 1,), (64,), (a, n * t, k))
    y = cp.empty((n, d * kept), cp.float32)
    residuals((n,), (kept,), (x, a, centres, y, t, d, k, kept))
    return y
