"""A launch per layer and step: one thread per element of the state, which also writes where the final state is kept.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void step(float* x, float* h, float* c, float* w, float* u, float* b, float* d, float* y,
                                float* s, float* z, int k, int m, int T, int t) {
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
  z[r * m + i] = y[i];
}
'''
step = cp.RawKernel(source, "step")


def forward(x, h0, c0, params):
    p = [params[name] for name in params]
    layers, n, m = h0.shape
    steps = x.shape[1]
    s = cp.empty((n, m), cp.float32)
    out = cp.empty(h0.shape, cp.float32)
    for i in range(layers):
        w, u, b, d = p[4 * i : 4 * i + 4]
        y = cp.empty((n, steps, m), cp.float32)
        for t in range(steps):
            step((n,), (m,), (x, h0[i], c0[i], w, u, b, d, y, s, out[i], w.shape[1], m, steps, t))
        x = y
    return out
