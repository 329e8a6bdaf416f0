"""A launch per layer, direction and step: one thread per element of the state, which lies beside the other way's; then
the linear layer on the last step.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void step(float* x, float* h, float* c, float* w, float* u, float* b, float* d, float* y,
                                float* s, int k, int m, int T, int t, int way) {
  int i = threadIdx.x, r = blockIdx.x;
  x += (r * T + t) * k;
  y += ((r * T + t) * 2 + way) * m;
  int first = t == (way ? T - 1 : 0);
  h = first ? h + r * m : way ? y + 2 * m : y - 2 * m;
  c = (first ? c : s) + r * m;
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
    n, steps = x.shape[0], x.shape[1]
    cells, m = h0.shape[0], h0.shape[2]
    s = cp.empty((n, m), cp.float32)
    for i in range(0, cells, 2):
        y = cp.empty((n, steps, 2 * m), cp.float32)
        for way in range(2):
            at = i + way
            w, u, b, d = p[4 * at : 4 * at + 4]
            for j in range(steps):
                t = steps - 1 - j if way else j
                step((n,), (m,), (x, h0[at], c0[at], w, u, b, d, y, s, w.shape[1], m, steps, t, way))
        x = y
    w, b = p[4 * cells : 4 * cells + 2]
    out = cp.empty((n, b.size), cp.float32)
    linear((n,), (b.size,), (x, w, b, out, steps, 2 * m))
    return out
