"""One thread per score, then one per output, with its own softmax.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void score(const float2* q, const float2* k, float* s, int n, int d) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y, z = blockIdx.z * n;
  if (r >= n || c >= n) return;
  q += (z + r) * d;
  k += (z + c) * d;
  float v = 0;
  for (int i = 0; i < d; ++i) v += q[i].x * k[i].x + q[i].y * k[i].y;
  s[(z + r) * n + c] = v * rsqrtf(d + d);
}

extern "C" __global__ void mix(const float* s, const float* v, float* out, int n) {
  int d = blockDim.x, r = blockIdx.x;
  s += r * n;
  v += r / n * n * d + threadIdx.x;
  float top = s[0], sum = 0, o = 0;
  for (int i = 1; i < n; ++i) top = fmaxf(top, s[i]);
  for (int i = 0; i < n; ++i) {
    float e = expf(s[i] - top);
    sum += e;
    o += e * v[i * d];
  }
  out[r * d + threadIdx.x] = o / sum;
}
'''
score = cp.RawKernel(source, "score")
mix = cp.RawKernel(source, "mix")


def forward(q, k, v):
    b, h, n, d = q.shape
    s = cp.empty((b * h, n, n), cp.float32)
    out = cp.empty(q.shape, cp.float32)
    score((n // 16 + 1, n // 16 + 1, b * h), (16, 16), (q, k, s, n, d // 2))
    mix((b * h * n,), (d,), (s, v, out, n))
    return out
