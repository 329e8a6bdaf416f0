"""One thread per output of a convolution, of a pooling or of a linear layer; relu where it belongs.

Techniques: one thread per output
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv(float* x, float* w, float* b, float* y, int C, int H, int K, int S, int P) {
  int h = (H + 2 * P - K) / S + 1, i = blockIdx.x * 128 + threadIdx.x, o = blockIdx.y;
  if (i >= h * h) return;
  x += blockIdx.z * C * H * H;
  float v = b[o];
  for (int k = 0; k < K * K; ++k) {
    int r = i / h * S - P + k / K, s = i % h * S - P + k % K;
    if ((r | s) < 0 || r >= H || s >= H) continue;
    for (int c = 0; c < C; ++c) v += x[(c * H + r) * H + s] * w[(o * C + c) * K * K + k];
  }
  y[(blockIdx.z * gridDim.y + o) * h * h + i] = fmaxf(v, 0);
}

extern "C" __global__ void pool(float* x, float* y, int H, int K) {
  int h = (H - K) / 2 + 1, i = blockIdx.y * 128 + threadIdx.x;
  if (i >= h * h) return;
  x += blockIdx.x * H * H + i / h * 2 * H + i % h * 2;
  float top = x[0];
  for (int k = 1; k < K * K; ++k) top = fmaxf(top, x[k / K * H + k % K]);
  y[blockIdx.x * h * h + i] = top;
}

extern "C" __global__ void linear(float* x, float* w, float* b, float* y, int n, int m, int k, int hidden) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r >= n || c >= m) return;
  float v = b[c];
  for (int i = 0; i < k; ++i) v += x[r * k + i] * w[c * k + i];
  y[r * m + c] = hidden ? fmaxf(v, 0) : v;
}
'''
conv = cp.RawKernel(source, "conv")
pool = cp.RawKernel(source, "pool")
linear = cp.RawKernel(source, "linear")


def convolve(x, w, b, stride, padding):
    n, c, size, _ = x.shape
    m, k = w.shape[0], w.shape[2]
    h = (size + 2 * padding - k) // stride + 1
    y = cp.empty((n, m, h, h), cp.float32)
    conv((h * h // 128 + 1, m, n), (128,), (x, w, b, y, c, size, k, stride, padding))
    return y


def shrink(x, k):
    n, c, size, _ = x.shape
    h = (size - k) // 2 + 1
    y = cp.empty((n, c, h, h), cp.float32)
    pool((n * c, h * h // 128 + 1), (128,), (x, y, size, k))
    return y


def dense(x, w, b, hidden):
    n, (m, k) = x.shape[0], w.shape
    y = cp.empty((n, m), cp.float32)
    linear((m // 16 + 1, n // 16 + 1), (16, 16), (x, w, b, y, n, m, k, hidden))
    return y


def forward(x, params):
    p = [params[name] for name in params]
    x = shrink(convolve(x, p[0], p[1], 4, 2), 3)
    x = shrink(convolve(x, p[2], p[3], 1, 2), 3)
    for i in range(4, 10, 2):
        x = convolve(x, p[i], p[i + 1], 1, 1)
    x = shrink(x, 3)
    for i in range(10, 16, 2):
        x = dense(x, p[i], p[i + 1], i < 14)
    return x
