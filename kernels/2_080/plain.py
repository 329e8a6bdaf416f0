"""One block per row of x: a tree finds the largest output; of one column the mean is itself.

Techniques: fusion, shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm_max_gelu(const float* x, const float* w, const float* b, float* out, int outputs,
                                         int width) {
  __shared__ float part[256];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * width;
  float top = -3.4e38f;
  for (int o = t; o < outputs; o += 256) {
    float dot = b[o];
    for (int i = 0; i < width; ++i) dot += x[i] * w[(size_t)o * width + i];
    top = fmaxf(top, dot);
  }
  part[t] = top;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] = fmaxf(part[t], part[t + s]);
    __syncthreads();
  }
  if (t == 0) {
    float v = part[0] - part[0];
    out[blockIdx.x] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}
'''
gemm_max_gelu = cp.RawKernel(source, "gemm_max_gelu")


def forward(x, weight, bias):
    rows, width = x.shape
    out = cp.empty((rows, 1), cp.float32)
    gemm_max_gelu((rows,), (256,), (x, weight, bias, out, bias.size, width))
    return out
