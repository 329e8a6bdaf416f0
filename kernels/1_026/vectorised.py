"""Four float4 per thread.

One read, one write and one erff per element. A thread takes four coalesced float4, 256 apart, so index arithmetic is
paid once for sixteen elements and all four loads are in flight before the first error function begins. erff is the
library's, so values equal the plain program's bit for bit.

Techniques: float4 loads, several items per thread, independent loads in flight
"""
import cupy as cp

source = r'''
__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

extern "C" __global__ void gelu_vec(const float* __restrict__ x, float* __restrict__ out, long long size) {
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
    out4[i + 256 * k] = make_float4(gelu(v[k].x), gelu(v[k].y), gelu(v[k].z), gelu(v[k].w));
  }
  long long rest = 4 * count + threadIdx.x;
  if (blockIdx.x == 0 && rest < size) out[rest] = gelu(x[rest]);
}
'''
gelu_vec = cp.RawKernel(source, "gelu_vec")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    gelu_vec(((x.size + 4095) // 4096,), (256,), (x, out, x.size))
    return out
