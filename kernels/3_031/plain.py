"""One thread per output of the first product, one per query and head with a running softmax, then a block per
position: a thread per channel for the second product, the residual and the layer norm.

Techniques: one thread per output, online softmax, block per row, shared-memory atomics
"""
import cupy as cp

source = r'''
extern "C" __global__ void project(float* x, float* w, float* b, float* p, int C, int T) {
  int t = blockIdx.x * 64 + threadIdx.x, o = blockIdx.y;
  if (t >= T) return;
  float v = b[o];
  for (int c = 0; c < C; ++c) v += x[(blockIdx.z * C + c) * T + t] * w[o * C + c];
  p[(blockIdx.z * T + t) * 3 * C + o] = v;
}

extern "C" __global__ void attention(float* p, float* y, int C, int T) {
  int i = blockIdx.x * 64 + threadIdx.x, d = C / 4;
  if (i >= T) return;
  p += blockIdx.z * T * 3 * C + blockIdx.y * d;
  y += (blockIdx.z * T + i) * C + blockIdx.y * d;
  float top = -3e38f, sum = 0;
  for (int j = 0; j < T; ++j) {
    float s = 0, old = top, *k = p + j * 3 * C + C;
    for (int e = 0; e < d; ++e) s += p[i * 3 * C + e] * k[e];
    s *= rsqrtf(d);
    top = fmaxf(top, s);
    sum = sum * expf(old - top) + expf(s - top);
    for (int e = 0; e < d; ++e) y[e] = (j ? y[e] * expf(old - top) : 0) + expf(s - top) * k[C + e];
  }
  for (int e = 0; e < d; ++e) y[e] /= sum;
}

extern "C" __global__ void layer_norm(float* y, float* x, float* w, float* b, float* g, float* h, float* out, int T) {
  __shared__ float s[2];
  s[0] = s[1] = 0;
  __syncthreads();
  int t = blockIdx.x, o = threadIdx.x, C = blockDim.x, at = (blockIdx.y * C + o) * T + t;
  float v = b[o];
  for (int c = 0; c < C; ++c) v += y[(blockIdx.y * T + t) * C + c] * w[o * C + c];
  v += x[at];
  atomicAdd(s, v / C);
  __syncthreads();
  v -= s[0];
  atomicAdd(s + 1, v * v / C);
  __syncthreads();
  out[at] = v * rsqrtf(s[1] + 1e-5f) * g[o] + h[o];
}
'''
project = cp.RawKernel(source, "project")
attention = cp.RawKernel(source, "attention")
layer_norm = cp.RawKernel(source, "layer_norm")


def forward(x, w, b, u, c, g, h):
    n, k, high, wide = x.shape
    t = high * wide
    p = cp.empty((n, t, 3 * k), cp.float32)
    project((t // 64 + 1, 3 * k, n), (64,), (x, w, b, p, k, t))
    y = cp.empty((n, t, k), cp.float32)
    attention((t // 64 + 1, 4, n), (64,), (p, y, k, t))
    out = cp.empty(x.shape, cp.float32)
    layer_norm((t, n), (k,), (y, x, u, c, g, h, out, t))
    return out
