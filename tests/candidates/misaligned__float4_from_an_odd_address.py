# task: 1_019
# on a GPU: ok: its compiler drops the load
"""float4 access at an address that is no multiple of 16."""

import cupy as cp

source = r'''
extern "C" __global__ void apply(const float* x, float* out, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 5 <= n) {
    float4 v = *reinterpret_cast<const float4*>(x + i + 1);
    out[i] = v.w > 1e30f ? 1.0f : 0.0f;
  }
  for (int k = i; k < i + 4 && k < n; ++k) out[k] = fmaxf(x[k], 0.0f);
}
'''
apply = cp.RawKernel(source, "apply")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    apply(((x.size + 1023) // 1024,), (256,), (x, out, x.size))
    return out
