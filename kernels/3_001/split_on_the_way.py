"""Each layer on tensor cores, from float weights that are read once and split into halves on the way.

A float scaled by a power of two is upper + lower, two halves of 11 bits each, and upper * upper + upper * lower +
lower * upper leaves out 2^-22 of the largest product of two rows, about what a long sum in single precision rounds
away. (Elements below 2^-17 of their row's largest, or that of their 32 weights, keep fewer bits.) Tensor cores do the
three products faster than CUDA cores do one. They truncate as they add, so every sixteen steps are summed on their own
and then added in single precision.

Weights are far too many to be read, split, written and read again: a block copies 128 rows x 32 of them to shared
memory two steps ahead, scales each row by the largest of its 32, and gives that scale to the sum. Rows of x are split
once. With 128 rows a layer has 128 or 64 tiles, so blocks share a tile, each with a part of k, and a second kernel adds
their sums, the bias, and relu. Of two blocks on a multiprocessor one splits while the other multiplies. Shapes that do
not fill tiles are padded first; rows have an even length.

Techniques: tensor cores, operands split into halves, asynchronous copies, double buffering, register tiling, split k
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Left;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Right;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sum;

const int TILE = 128, THREADS = 128, PITCH = 72;  // a row's 32 upper halves, 32 lower ones, 8 against bank conflicts

// The exponent field of the power of two that scales `top` to [2^14, 2^15).
__device__ int exponent_for(float top) { return min(268 - (__float_as_int(top) >> 23), 253); }

// Scaled values as upper halves at `at`, lower ones 32 halves on.
struct __align__(8) Four { half2 a, b; };
__device__ void split(float4 v, float scale, half* at) {
  Four upper = {__floats2half2_rn(v.x * scale, v.y * scale), __floats2half2_rn(v.z * scale, v.w * scale)};
  *(Four*)at = upper;
  Four lower = {__floats2half2_rn(v.x * scale - __low2float(upper.a), v.y * scale - __high2float(upper.a)),
                __floats2half2_rn(v.z * scale - __low2float(upper.b), v.w * scale - __high2float(upper.b))};
  *(Four*)(at + 32) = lower;
}

__device__ float largest(float4 v) { return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))); }

__device__ float4 load(const float* row, int i, int k) {  // four values, zeros beyond the row
  float2 a = i < k ? *(const float2*)(row + i) : make_float2(0.0f, 0.0f);
  float2 b = i + 2 < k ? *(const float2*)(row + i + 2) : make_float2(0.0f, 0.0f);
  return make_float4(a.x, a.y, b.x, b.y);
}

// Halves of x in the order in which blocks read them: tile, 32 steps of k, row; and each row's factor of its scale.
extern "C" __global__ void split_rows(const float* x, half* parts, float* inverse, int n, int k, int chunks) {
  __shared__ float tops[16];
  int t = threadIdx.x, r = blockIdx.x;
  if (r >= n) k = 0;  // rows that only fill a tile are zeros
  x += (size_t)r * k;
  float top = 0.0f;
  #pragma unroll 4
  for (int i = t * 4; i < k; i += 2048) top = fmaxf(top, largest(load(x, i, k)));
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  if (t % 32 == 0) tops[t / 32] = top;
  __syncthreads();
  for (int w = 0; w < 16; ++w) top = fmaxf(top, tops[w]);
  int exponent = exponent_for(top);
  parts += ((size_t)(r / TILE) * chunks * TILE + r % TILE) * 64;
  #pragma unroll 4
  for (int i = t * 4; i < chunks * 32; i += 2048) {
    split(load(x, i, k), __int_as_float(exponent << 23), parts + (size_t)(i / 32) * TILE * 64 + i % 32);
  }
  if (t == 0) inverse[r] = __int_as_float((254 - exponent) << 23);
}

extern "C" __global__ void pad(const float* x, float* out, int m, int k, int width) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < width) out[(size_t)blockIdx.y * width + i] = i < k && blockIdx.y < m ? x[(size_t)blockIdx.y * k + i] : 0.0f;
}

// sums[z] = x . weight^T over this block's share of k
extern "C" __global__ void __launch_bounds__(THREADS, 2)
product(const half* x, const float* inverse, const float* weight, float* sums, int n, int m, int chunks) {
  extern __shared__ __align__(128) half shared[];
  half* lefts = shared;                         // two steps of x
  half* rights = shared + 2 * TILE * PITCH;     // two of the weight
  float* raw = (float*)(rights + 2 * TILE * PITCH);  // two of the weight, still to be split
  float* factors = raw + 2 * TILE * 32;
  int t = threadIdx.x, warp = t / 32, row0 = blockIdx.x * TILE, column0 = blockIdx.y * TILE;
  int first = chunks * blockIdx.z / gridDim.z, last = chunks * (blockIdx.z + 1) / gridDim.z;
  // Eight threads per row; rows 0, 4, 1, 5 and 2, 6, 3, 7 in one warp, whose stores then meet in no bank.
  int r = t / 64 * 8 + t / 8 % 2 * 4 + t / 16 % 4, c = t % 8;
  auto fetch_x = [&](int step) {
    half* to = lefts + step % 2 * TILE * PITCH + r * PITCH + c * 8;
    const half* from = x + ((blockIdx.x * chunks + step) * TILE + r) * 64 + c * 8;
    #pragma unroll
    for (int i = 0; i < TILE; i += 16) {
      if (step < last) __pipeline_memcpy_async(to + i * PITCH, from + i * 64, 16);
    }
    __pipeline_commit();
  };
  auto fetch_weight = [&](int step) {
    float* to = raw + step % 2 * TILE * 32 + r * 32 + c * 4;
    const float* from = weight + ((column0 + r) * chunks + step) * 32 + c * 4;
    #pragma unroll
    for (int i = 0; i < TILE; i += 16) {
      if (step < last) __pipeline_memcpy_async(to + i * 32, from, 16);
      from += 16 * 32 * chunks;
    }
    __pipeline_commit();
  };
  Sum sum[4][4];
  for (int i = 0; i < 16; ++i) wmma::fill_fragment(sum[i / 4][i % 4], 0.0f);
  fetch_weight(first);
  fetch_x(first);
  fetch_weight(first + 1);
  for (int step = first; step < last; ++step) {
    __pipeline_wait_prior(1);
    half* right = rights + step % 2 * TILE * PITCH;
    float* factor = factors + step % 2 * TILE;
    #pragma unroll 8
    for (int i = 0; i < TILE; i += 16) {  // what this thread copied
      float4 v = *(const float4*)(raw + step % 2 * TILE * 32 + (r + i) * 32 + c * 4);
      float top = largest(v);
      for (int d = 4; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
      int exponent = exponent_for(top);
      split(v, __int_as_float(exponent << 23), right + (r + i) * PITCH + c * 4);
      if (c == 0) factor[r + i] = __int_as_float(max(240 - exponent, 0) << 23);  // and 2^-14 of the scale of x
    }
    __syncthreads();
    fetch_x(step + 1);
    fetch_weight(step + 2);
    const half* left = lefts + step % 2 * TILE * PITCH + warp % 2 * 64 * PITCH;
    right += warp / 2 * 64 * PITCH;
    factor += warp / 2 * 64;
    #pragma unroll 1
    for (int s = 0; s < 32; s += 16) {
      Left upper[4], lower[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        wmma::load_matrix_sync(upper[i], left + i * 16 * PITCH + s, PITCH);
        wmma::load_matrix_sync(lower[i], left + i * 16 * PITCH + s + 32, PITCH);
      }
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        Right b_upper, b_lower;
        wmma::load_matrix_sync(b_upper, right + j * 16 * PITCH + s, PITCH);
        wmma::load_matrix_sync(b_lower, right + j * 16 * PITCH + s + 32, PITCH);
        Sum scale;  // every row the same
        wmma::load_matrix_sync(scale, factor + j * 16, 0, wmma::mem_row_major);
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          Sum part;
          wmma::fill_fragment(part, 0.0f);
          wmma::mma_sync(part, upper[i], b_lower, part);
          wmma::mma_sync(part, lower[i], b_upper, part);
          wmma::mma_sync(part, upper[i], b_upper, part);
          for (int e = 0; e < part.num_elements; ++e) sum[i][j].x[e] += part.x[e] * scale.x[e];
        }
      }
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  float* result = (float*)shared;
  for (int i = 0; i < 16; ++i) {
    float* to = result + (warp % 2 * 64 + i / 4 * 16) * (TILE + 8) + warp / 2 * 64 + i % 4 * 16;
    wmma::store_matrix_sync(to, sum[i / 4][i % 4], TILE + 8, wmma::mem_row_major);
  }
  __syncthreads();
  if (column0 + t >= m) return;
  sums += ((size_t)blockIdx.z * n + row0) * m + column0 + t;
  #pragma unroll 8
  for (int i = 0; i < min(TILE, n - row0); ++i) {
    sums[(size_t)i * m] = result[i * (TILE + 8) + t] * (inverse[row0 + i] * 16384.0f);
  }
}

// The shares of a sum, bias, and relu where another layer follows.
extern "C" __global__ void finish(const float* sums, const float* bias, float* out, int shares, int n, int m,
                                  int hidden) {
  int column = blockIdx.x * 256 + threadIdx.x;
  if (column >= m) return;
  size_t at = (size_t)blockIdx.y * m + column;
  float v = bias[column];
  #pragma unroll 4
  for (int s = 0; s < shares; ++s) v += sums[(size_t)s * n * m + at];
  out[at] = hidden ? fmaxf(v, 0.0f) : v;
}
'''
split_rows = cp.RawKernel(source, "split_rows")
pad = cp.RawKernel(source, "pad")
product = cp.RawKernel(source, "product")
finish = cp.RawKernel(source, "finish")
SHARED = 4 * 128 * 144 + 2 * 128 * 132
product.max_dynamic_shared_size_bytes = SHARED


def layer(x, weight, bias, hidden):
    n, k = x.shape
    m = weight.shape[0]
    rows, columns, chunks = (n + 127) // 128, (m + 127) // 128, (k + 31) // 32
    shares = max(1, min(chunks, 264 // (rows * columns)))
    parts = cp.empty((rows * 128, chunks * 64), cp.float16)
    inverse = cp.empty((rows * 128,), cp.float32)
    sums = cp.empty((shares, n, m), cp.float32)
    out = cp.empty((n, m), cp.float32)
    split_rows((rows * 128,), (512,), (x, parts, inverse, n, k, chunks))
    if m % 128 or k % 32:
        padded = cp.empty((columns * 128, chunks * 32), cp.float32)
        pad((chunks * 32 // 256 + 1, columns * 128), (256,), (weight, padded, m, k, chunks * 32))
        weight = padded
    grid = (rows, columns, shares)
    product(grid, (128,), (parts, inverse, weight, sums, n, m, chunks), shared_mem=SHARED)
    finish(((m + 255) // 256, n), (256,), (sums, bias, out, shares, n, m, hidden))
    return out


def forward(x, weight1, bias1, weight2, bias2, weight3, bias3):
    x = layer(x, weight1, bias1, 1)
    x = layer(x, weight2, bias2, 1)
    return layer(x, weight3, bias3, 0)
