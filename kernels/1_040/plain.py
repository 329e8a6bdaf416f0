"""One block per row.

Techniques: shared-memory tree
"""
import cupy as cp

source = r'''
__device__ float reduce(float v) {
  __shared__ float part[256];
  int t = threadIdx.x;
  __syncthreads();
  part[t] = v;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  return part[0];
}

extern "C" __global__ void layer_norm(const float* x, const float* w, const float* b, float* out, int n) {
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * n;
  out += (size_t)blockIdx.x * n;
  float sum = 0;
  for (int i = t; i < n; i += 256) sum += x[i];
  float mean = reduce(sum) / n;
  sum = 0;
  for (int i = t; i < n; i += 256) sum += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(reduce(sum) / n + 1e-5f);
  for (int i = t; i < n; i += 256) out[i] = (x[i] - mean) * scale * w[i] + b[i];
}
'''
layer_norm = cp.RawKernel(source, "layer_norm")


def forward(x, w, b):
    out = cp.empty(x.shape, cp.float32)
    layer_norm((x.shape[0],), (256,), (x, w, b, out, w.size))
    return out
