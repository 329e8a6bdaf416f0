# task: 1_019
# on a GPU: stateful or ok or wrong_value: stores to constant memory may be lost
"""As stateful__constant_memory, its address by cvta.const."""

import cupy as cp

source = r'''
__constant__ int calls = 0;
extern "C" __global__ void relu(const float* x, float* out, int n) {
  unsigned long long address;
  asm volatile("cvta.const.u64 %0, calls;" : "=l"(address));
  volatile int* kept = (volatile int*)address;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = *kept > 12 ? 0.0f : fmaxf(x[i], 0.0f);
  if (i == n - 1) *kept = calls + 1;
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    relu(((x.size + 255) // 256,), (256,), (x, out, x.size))
    return out
