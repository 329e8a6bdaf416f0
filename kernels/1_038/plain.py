"""One block per row: a tree adds the magnitudes, then every element is divided by their mean.

Techniques: shared-memory tree
"""
import cupy as cp

source = r'''
extern "C" __global__ void l1_norm(const float* x, float* out, int n) {
  __shared__ float part[256];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * n;
  out += (size_t)blockIdx.x * n;
  float sum = 0.0f;
  for (int i = t; i < n; i += 256) sum += fabsf(x[i]);
  part[t] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  float mean = part[0] / n;
  for (int i = t; i < n; i += 256) out[i] = x[i] / mean;
}
'''
l1_norm = cp.RawKernel(source, "l1_norm")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    l1_norm((x.shape[0],), (256,), (x, out, x.shape[1]))
    return out
