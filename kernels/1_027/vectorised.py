"""Four float4 per thread.

Positive inputs cost a few instructions and negative ones an exponential, so the memory system sets the pace: one read
and one write per element. A thread takes four coalesced float4, 256 apart, pays for index arithmetic once, and as the
arrays do not overlap (`__restrict__`) all four loads start before the first store.

Techniques: float4 loads, several items per thread, independent loads in flight
"""
import cupy as cp

source = r'''
__device__ float selu(float v) {
  return 1.05070098f * (v > 0.0f ? v : 1.67326324f * expm1f(v));
}

extern "C" __global__ void selu_vec(const float* __restrict__ x, float* __restrict__ out, long long size) {
  const float4* x4 = (const float4*)x;
  float4* out4 = (float4*)out;
  long long count = size / 4;
  long long i = (long long)blockIdx.x * 1024 + threadIdx.x;
  float4 v[4];
  #pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (i + 256 * k < count) v[k] = x4[i + 256 * k];
  }
  #pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (i + 256 * k >= count) break;
    out4[i + 256 * k] = make_float4(selu(v[k].x), selu(v[k].y), selu(v[k].z), selu(v[k].w));
  }
  long long rest = 4 * count + threadIdx.x;
  if (blockIdx.x == 0 && rest < size) out[rest] = selu(x[rest]);
}
'''
selu_vec = cp.RawKernel(source, "selu_vec")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    selu_vec(((x.size + 4095) // 4096,), (256,), (x, out, x.size))
    return out
