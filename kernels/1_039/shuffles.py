"""Warp shuffles, four elements per step, a reciprocal instead of divisions.

Rows of 65,535 or 5,001 elements start misaligned, so loads stay scalar; each step of a loop takes four of them, a block's width
apart, into four sums, which keeps four coalesced loads in flight. Five shuffles and one barrier replace a tree of nine
barriers, and one reciprocal per row replaces a division per element. The row is still in L2 when it is read again.

Techniques: warp shuffles, independent accumulators, several items per thread, reciprocal instead of division
"""
import cupy as cp

source = r'''
extern "C" __global__ void l2_norm_shuffles(const float* __restrict__ x, float* __restrict__ out, int n) {
  __shared__ float part[4];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * n;
  out += (size_t)blockIdx.x * n;
  float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
  int i = t;
  for (; i + 384 < n; i += 512) {
    a += x[i] * x[i];
    b += x[i + 128] * x[i + 128];
    c += x[i + 256] * x[i + 256];
    d += x[i + 384] * x[i + 384];
  }
  for (; i < n; i += 128) a += x[i] * x[i];
  float sum = (a + b) + (c + d);
  for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(0xffffffffu, sum, k);
  if (t % 32 == 0) part[t / 32] = sum;
  __syncthreads();
  float scale = 1.0f / sqrtf((part[0] + part[1]) + (part[2] + part[3]));
  #pragma unroll 4
  for (int k = t; k < n; k += 128) out[k] = x[k] * scale;
}
'''
l2_norm_shuffles = cp.RawKernel(source, "l2_norm_shuffles")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    l2_norm_shuffles((x.shape[0],), (128,), (x, out, x.shape[1]))
    return out
