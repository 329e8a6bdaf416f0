"""One warp per row takes both distances in one pass of float4 loads, and adds its share of the mean.

Each array is read once, where the reference writes differences and reads them back. A lane has several float4 loads in
flight, five shuffles end a row, and there is no barrier. Rows of 1,001 floats begin at any address: the up to three
elements before the first whole float4 of a row, and those after the last, go one by one.

Techniques: fusion, warp per row, float4 loads, warp shuffles, atomics
"""
import cupy as cp

source = r'''
__device__ float square(float a, float b) {
  float d = a - b + 1e-6f;
  return d * d;
}

__device__ float squares(float4 a, float4 b) {
  return (square(a.x, b.x) + square(a.y, b.y)) + (square(a.z, b.z) + square(a.w, b.w));
}

__device__ float warp_sum(float sum) {
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  return sum;
}

extern "C" __global__ void triplet(const float* a, const float* p, const float* n, float* out, int rows, int columns) {
  int lane = threadIdx.x;
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  size_t start = (size_t)r * columns;
  size_t whole = (start + 3) / 4;
  size_t end = start + columns;
  float near = 0.0f, far = 0.0f;
  #pragma unroll 4
  for (size_t i = whole + lane; i < end / 4; i += 32) {
    float4 u = ((const float4*)a)[i];
    near += squares(u, ((const float4*)p)[i]);
    far += squares(u, ((const float4*)n)[i]);
  }
  int head = 4 * whole - start;
  if (lane < head || lane - head < end % 4) {
    size_t i = lane < head ? start + lane : end / 4 * 4 + lane - head;
    near += square(a[i], p[i]);
    far += square(a[i], n[i]);
  }
  near = warp_sum(near);
  far = warp_sum(far);
  if (lane == 0) atomicAdd(out, fmaxf(sqrtf(near) - sqrtf(far) + 1.0f, 0.0f) / rows);
}
'''
triplet = cp.RawKernel(source, "triplet")


def forward(anchor, positive, negative):
    rows, columns = anchor.shape
    out = cp.zeros((), cp.float32)
    triplet(((rows + 3) // 4,), (32, 4), (anchor, positive, negative, out, rows, columns))
    return out
