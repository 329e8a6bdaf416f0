"""A warp takes whole rows as float4 and marches through z; windows along x are put together by shuffles.

A window's elements are 3 apart and windows 2 apart, so 27 strided loads an output meet every element 3.4 times. Here
a lane holds four neighbouring elements of a row, and maxima are taken axis by axis: of three rows, element by
element; of three planes, where a plane of odd index serves two steps of z and waits in registers; last along x, where
four shuffles give the neighbours of two outputs. That is six float4 loads for two outputs in place of 54 scalar ones.
Rows are a multiple of four and at most 128 long at all sizes.

Techniques: float4 loads, separable window, march along z with planes in registers, warp shuffles in place of loads
"""
import cupy as cp

source = r'''
#include <math_constants.h>

// As PyTorch: a NaN stays.
__device__ float larger(float a, float b) { return b > a || b != b ? b : a; }

__device__ float4 larger(float4 a, float4 b) {
  return make_float4(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
}

// The larger of three rows, 3 apart, element by element; p points into the middle one.
__device__ float4 three_rows(const float4* p, int vectors, bool above, bool inside, bool below) {
  float low = -CUDART_INF_F;
  float4 a = make_float4(low, low, low, low), b = a, c = a;
  if (above) a = *(p - 3 * vectors);
  if (inside) b = *p;
  if (below) c = *(p + 3 * vectors);
  return larger(larger(a, b), c);
}

extern "C" __global__ void __launch_bounds__(512, 2) max_pool(const float4* __restrict__ x, float* __restrict__ out,
                                                              int nz, int ny, int vectors, int mz, int my, int mx) {
  int lane = threadIdx.x;
  int oy = blockIdx.x * 16 + threadIdx.y;
  if (oy >= my) return;
  size_t plane = (size_t)ny * vectors;
  x += (size_t)blockIdx.y * nz * plane + (2 * oy + 2) * vectors + lane;
  out += ((size_t)blockIdx.y * mz * my + oy) * mx + 2 * lane;
  bool in = lane < vectors, above = in && oy > 0, below = in && 2 * oy + 5 < ny;
  // Planes 2 oz - 1, 2 oz + 1 and 2 oz + 3; the last two wait for later steps.
  float4 a = three_rows(x, vectors, false, false, false);
  float4 b = three_rows(x + plane, vectors, above, in, below);
  float4 c = three_rows(x + 3 * plane, vectors, above, in, below);
  x += 2 * plane;
  for (int oz = 0; oz < mz; ++oz) {
    bool last = 2 * oz + 5 >= nz;
    float4 even = three_rows(x, vectors, above, in, below);
    float4 odd = three_rows(x + 3 * plane, vectors, above && !last, in && !last, below && !last);
    float4 v = larger(larger(a, even), odd);
    a = b;
    b = c;
    c = odd;
    float before = __shfl_up_sync(0xffffffffu, v.w, 1);
    float4 after;
    after.x = __shfl_down_sync(0xffffffffu, v.x, 1);
    after.y = __shfl_down_sync(0xffffffffu, v.y, 1);
    after.w = __shfl_down_sync(0xffffffffu, v.w, 1);
    if (lane == 0) before = -CUDART_INF_F;
    if (2 * lane < mx) out[0] = larger(larger(before, v.z), after.y);
    if (2 * lane + 1 < mx) out[1] = larger(larger(v.y, after.x), after.w);
    x += 2 * plane;
    out += (size_t)my * mx;
  }
}
'''
max_pool = cp.RawKernel(source, "max_pool")


def forward(x):
    batch, channels, nz, ny, nx = x.shape
    mz, my, mx = (nz - 5) // 2 + 1, (ny - 5) // 2 + 1, (nx - 5) // 2 + 1
    out = cp.empty((batch, channels, mz, my, mx), cp.float32)
    max_pool(((my + 15) // 16, batch * channels), (32, 16), (x, out, nz, ny, nx // 4, mz, my, mx))
    return out
