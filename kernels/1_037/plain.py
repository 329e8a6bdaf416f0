"""Two kernels: the sum of squares, one atomic per block, then the quotient.

Techniques: shared-memory tree, grid-stride loop, atomics
"""
import cupy as cp

source = r'''
extern "C" __global__ void sum_squares(const float* x, float* sum, long long size) {
  __shared__ float part[256];
  int t = threadIdx.x;
  double s = 0;
  for (long long i = blockIdx.x * 256 + t; i < size; i += gridDim.x * 256) s += x[i] * x[i];
  part[t] = s;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    __syncthreads();
  }
  if (t == 0) atomicAdd(sum, part[0]);
}

extern "C" __global__ void divide(const float* x, const float* sum, float* out, long long size) {
  float norm = sqrtf(*sum);
  for (long long i = blockIdx.x * 256 + threadIdx.x; i < size; i += gridDim.x * 256) out[i] = x[i] / norm;
}
'''
sum_squares = cp.RawKernel(source, "sum_squares")
divide = cp.RawKernel(source, "divide")


def forward(x):
    sum = cp.zeros((1,), cp.float32)
    out = cp.empty(x.shape, cp.float32)
    sum_squares((256,), (256,), (x, sum, x.size))
    divide((512,), (256,), (x, sum, out, x.size))
    return out
