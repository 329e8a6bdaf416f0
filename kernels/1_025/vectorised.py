"""Four float4 per thread.

The function costs tens of instructions per element, the memory one read and one write. A thread takes four coalesced
float4, 256 apart: index arithmetic is paid once for sixteen elements, and all four loads are in flight before the
arithmetic of the first begins. Values equal the plain program's bit for bit.

Techniques: float4 loads, several items per thread, independent loads in flight
"""
import cupy as cp

source = r'''
__device__ float swish(float v) {
  return v / (1.0f + expf(-v));
}

extern "C" __global__ void swish_vec(const float* __restrict__ x, float* __restrict__ out, long long size) {
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
    out4[i + 256 * k] = make_float4(swish(v[k].x), swish(v[k].y), swish(v[k].z), swish(v[k].w));
  }
  long long rest = 4 * count + threadIdx.x;
  if (blockIdx.x == 0 && rest < size) out[rest] = swish(x[rest]);
}
'''
swish_vec = cp.RawKernel(source, "swish_vec")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    swish_vec(((x.size + 4095) // 4096,), (256,), (x, out, x.size))
    return out
