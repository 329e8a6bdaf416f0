"""A launch per layer and step: one thread per element of the state; last states are the output.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void step(float* x, float* h, float* w, float* u, float* b, float* c, float* y, int k, int m) {
  int i = threadIdx.x, r = blockIdx.x;
  float s[6];
  for (int g = 0; g < 3; ++g) {
    int row = g * m + i;
    s[g] = b[row];
    for (int j = 0; j < k; ++j) s[g] += x[r * k + j] * w[row * k + j];
    s[g + 3] = c[row];
    for (int j = 0; j < m; ++j) s[g + 3] += h[r * m + j] * u[row * m + j];
  }
  float reset = 1 / (1 + expf(-s[0] - s[3])), keep = 1 / (1 + expf(-s[1] - s[4]));
  float fresh = tanhf(s[2] + reset * s[5]);
  y[r * m + i] = fresh + keep * (h[r * m + i] - fresh);
}
'''
step = cp.RawKernel(source, "step")


def forward(x, h0, params):
    p = [params[name] for name in params]
    out = cp.empty(h0.shape, cp.float32)
    layers, n, m = h0.shape
    xs = [x[t] for t in range(x.shape[0])]
    for i in range(layers):
        w, u, b, c = p[4 * i : 4 * i + 4]
        h = h0[i]
        for t in range(len(xs)):
            y = out[i] if t == len(xs) - 1 else cp.empty((n, m), cp.float32)
            step((n,), (m,), (xs[t], h, w, u, b, c, y, w.shape[1], m))
            h = xs[t] = y
    return out
