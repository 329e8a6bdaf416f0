"""One block per row of x: a thread keeps the larger of two neighbouring products, a tree adds them up.

Techniques: fusion, shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void gemm_max_sum(const float* x, const float* w, const float* b, float* out, int outputs,
                                        int width) {
  __shared__ float part[256];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * width;
  float sum = 0.0f;
  for (int o = 2 * t; o + 1 < outputs; o += 512) {
    float left = b[o], right = b[o + 1];
    for (int i = 0; i < width; ++i) {
      left += x[i] * w[(size_t)o * width + i];
      right += x[i] * w[(size_t)(o + 1) * width + i];
    }
    sum += fmaxf(left, right);
  }
  part[t] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0] * 0.5f;
}
'''
gemm_max_sum = cp.RawKernel(source, "gemm_max_sum")


def forward(x, weight, bias):
    rows, width = x.shape
    out = cp.empty((rows,), cp.float32)
    gemm_max_sum((rows,), (256,), (x, weight, bias, out, bias.size, width))
    return out
