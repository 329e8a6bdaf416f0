"""A launch per layer, direction and step: one thread per element of the state, which lies beside the other way's; a
last launch per layer copies the final states.

Techniques: one thread per output, fusion
"""
import cupy as cp

source = r'''
extern "C" __global__ void step(float* x, float* h, float* w, float* u, float* b, float* c, float* y, int k, int m,
                                int stride, int at) {
  int i = threadIdx.x, r = blockIdx.x;
  float s[6];
  h += r * stride + (stride > m) * at;
  for (int g = 0; g < 3; ++g) {
    int row = g * m + i;
    s[g] = b[row];
    for (int j = 0; j < k; ++j) s[g] += x[r * k + j] * w[row * k + j];
    s[g + 3] = c[row];
    for (int j = 0; j < m; ++j) s[g + 3] += h[j] * u[row * m + j];
  }
  float reset = 1 / (1 + expf(-s[0] - s[3])), keep = 1 / (1 + expf(-s[1] - s[4]));
  float fresh = tanhf(s[2] + reset * s[5]);
  y[r * 2 * m + at + i] = fresh + keep * (h[i] - fresh);
}

extern "C" __global__ void copy(float* from, float* to, int m, int at) {
  to[blockIdx.x * m + threadIdx.x] = from[blockIdx.x * 2 * m + at + threadIdx.x];
}
'''
step = cp.RawKernel(source, "step")
copy = cp.RawKernel(source, "copy")


def forward(x, h0, params):
    p = [params[name] for name in params]
    steps, n, m = x.shape[0], h0.shape[1], h0.shape[2]
    out = cp.empty(h0.shape, cp.float32)
    for i in range(0, h0.shape[0], 2):
        y = cp.empty((steps, n, 2 * m), cp.float32)
        for way in range(2):
            w, u, b, c = p[4 * (i + way) : 4 * (i + way) + 4]
            h, stride = h0[i + way], m
            for j in range(steps):
                t = steps - 1 - j if way else j
                step((n,), (m,), (x[t], h, w, u, b, c, y[t], w.shape[1], m, stride, way * m))
                h, stride = y[t], 2 * m
            copy((n,), (m,), (h, out[i + way], m, way * m))
        x = y
    return out
