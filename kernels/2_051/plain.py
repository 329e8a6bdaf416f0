"""One block per row of x: a tree adds up the outputs, and gelu of their mean is added to the row.

Techniques: fusion, shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm_mean_gelu(const float* x, const float* s, const float* w, const float* b, float* out,
                                          int outputs, int width) {
  __shared__ float part[256];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * width;
  float sum = 0.0f;
  for (int o = t; o < outputs; o += 256) {
    float dot = b[o] - s[o];
    for (int i = 0; i < width; ++i) dot += x[i] * w[(size_t)o * width + i];
    sum += dot;
  }
  part[t] = sum;
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (t < h) part[t] += part[t + h];
    __syncthreads();
  }
  float v = part[0] / outputs;  // log(exp(v)) of the one column
  v = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  for (int i = t; i < width; i += 256) out[(size_t)blockIdx.x * width + i] = v + x[i];
}
'''
gemm_mean_gelu = cp.RawKernel(source, "gemm_mean_gelu")


def forward(x, subtract, w, b):
    rows, width = x.shape
    out = cp.empty(x.shape, cp.float32)
    gemm_mean_gelu((rows,), (256,), (x, subtract, w, b, out, b.size, width))
    return out
