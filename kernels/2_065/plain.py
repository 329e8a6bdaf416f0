"""One block per image: threads share the pooled elements of all channels, a tree adds them up.

Techniques: fusion, block per row, shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void conv_sum(float* x, float* w, float* bias, float* out, int O, int C, int H, int W) {
  __shared__ float part[256];
  int wide = (W - 2) / 4, n = (H - 2) / 4 * wide, t = threadIdx.x;
  x += blockIdx.x * C * H * W;
  float sum = 0;
  for (int j = t; j < O * n; j += 256) {
    int o = j / n, r = j % n / wide * 4, s = j % n % wide * 4;
    float v = 0;
    for (int q = 0; q < 16; ++q)
      for (int c = 0; c < C; ++c)
        for (int k = 0; k < 9; ++k)
          v += x[(c * H + r + q / 4 + k / 3) * W + s + q % 4 + k % 3] * w[(o * C + c) * 9 + k];
    sum += 1 / (1 + expf(-v / 16 - bias[o]));
  }
  part[t] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}
'''
conv_sum = cp.RawKernel(source, "conv_sum")


def forward(x, w, bias):
    n, c, h, k = x.shape
    out = cp.empty((n,), cp.float32)
    conv_sum((n,), (256,), (x, w, bias, out, w.shape[0], c, h, k))
    return out
