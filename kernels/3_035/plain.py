"""A launch per layer and step: one thread per element of the state, which sums its four gates' products; then the
linear layer on the last step.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void step(float* x, float* h, float* c, float* w, float* u, float* b, float* d, float* y,
                                float* s, int k, int m, int T, int t) {
  int i = threadIdx.x, r = blockIdx.x;
  x += (r * T + t) * k;
  y += (r * T + t) * m;
  h = t ? y - m : h + r * m;
  c = (t ? s : c) + r * m;
  float v[4];
  for (int g = 0; g < 4; ++g) {
    int row = g * m + i;
    v[g] = b[row] + d[row];
    for (int j = 0; j < k; ++j) v[g] += x[j] * w[row * k + j];
    for (int j = 0; j < m; ++j) v[g] += h[j] * u[row * m + j];
  }
  float cell = c[i] / (1 + expf(-v[1])) + tanhf(v[2]) / (1 + expf(-v[0]));
  s[r * m + i] = cell;
  y[i] = tanhf(cell) / (1 + expf(-v[3]));
}

extern "C" __global__ void linear(float* x, float* w, float* b, float* y, int T, int m) {
  int i = threadIdx.x;
  x += (blockIdx.x * T + T - 1) * m;
  float v = b[i];
  for (int j = 0; j < m; ++j) v += x[j] * w[i * m + j];
  y[blockIdx.x * blockDim.x + i] = v;
}
'''
step = cp.RawKernel(source, "step")
linear = cp.RawKernel(source, "linear")


def forward(x, h0, c0, params):
    p = [params[name] for name in params]
    layers, n, m = h0.shape
    steps = x.shape[1]
    s = cp.empty((n, m), cp.float32)
    for i in range(layers):
        w, u, b, d = p[4 * i : 4 * i + 4]
        y = cp.empty((n, steps, m), cp.float32)
        for t in range(steps):
            step((n,), (m,), (x, h0[i], c0[i], w, u, b, d, y, s, w.shape[1], m, steps, t))
        x = y
    w, b = p[4 * layers : 4 * layers + 2]
    out = cp.empty((n, b.size), cp.float32)
    linear((n,), (b.size,), (x, w, b, out, steps, m))
    return out
