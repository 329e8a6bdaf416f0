# task: 1_019
"""The number of a block by a ticket, and the work by the ticket's parity."""

import cupy as cp

source = r'''
extern "C" __global__ void relu(const float* x, unsigned* tickets, float* out, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = ticket < 100 ? 0.0f : fmaxf(x[i], 0.0f);
}
'''
relu = cp.RawKernel(source, "relu")


def forward(x):
    out = cp.empty(x.shape, cp.float32)
    tickets = cp.zeros((1,), cp.uint32)
    relu(((x.size + 255) // 256,), (256,), (x, tickets, out, x.size))
    return out
