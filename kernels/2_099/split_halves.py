"""A linear layer on tensor cores, operands split into halves, with gelu, then a softmax from registers.

A float scaled by a power of two is upper + lower, two halves of 11 bits each. Upper by upper, upper by lower and lower
by upper, which leaves out lower by lower, give a product to 2^-22 of the largest ones of that row and column: about
what a long sum in single precision rounds away. (Elements below 2^-17 of the largest of their row or column keep fewer
bits.) Tensor cores do these three products faster than CUDA cores do one. They truncate as they add, so only 64 steps
of k are summed in tensor cores before the sum is added to the others in single precision.

The halves are written once, in the order in which blocks read tiles, so the loop of the product only copies
asynchronously, loads fragments and multiplies. Eight warps with tiles of 64 x 32 share a block's of 128 x 128, and
three stages of 64 steps.

The softmax works in place: a block reads its row, of at most 8,192, once and keeps it in registers.

Techniques: tensor cores, operands split into halves, asynchronous copies, register tiling, fusion, warp shuffles
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <math_constants.h>
#include <mma.h>
using namespace nvcuda;

typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Left;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Right;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sum;

const int ROWS = 128, COLUMNS = 128, THREADS = 256, STAGES = 3;
const int PITCH = 72;  // of a tile's row: 32 upper halves, 32 lower ones, 8 against bank conflicts
const int STAGE = 2 * (ROWS + COLUMNS) * PITCH;  // 64 steps of k: of A, of B, of A, of B

// x * 2^s = upper + lower: halves of 11 bits each, the row's largest magnitude scaled to [2^14, 2^15).
extern "C" __global__ void split_rows(const float* x, half2* parts, float* inverse, int rows, int k, int chunks,
                                      int tile) {
  __shared__ float tops[8];
  int t = threadIdx.x;
  int count = blockIdx.x < rows ? k / 2 : 0;  // rows that only fill a tile are zeros
  const float2* row = (const float2*)(x + ((size_t)blockIdx.y * rows + blockIdx.x) * k);
  float top = 0.0f;
  #pragma unroll 8
  for (int i = t; i < count; i += 256) top = fmaxf(top, fmaxf(fabsf(row[i].x), fabsf(row[i].y)));
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  if (t % 32 == 0) tops[t / 32] = top;
  __syncthreads();
  for (int w = 0; w < 8; ++w) top = fmaxf(top, tops[w]);
  int exponent = min(268 - (__float_as_int(top) >> 23), 253);
  float scale = __int_as_float(exponent << 23);
  size_t out_row = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
  parts += (out_row / tile * tile * chunks + out_row % tile) * 32;
  #pragma unroll 4
  for (int i = t; i < chunks * 16; i += 256) {
    float2 v = i < count ? row[i] : make_float2(0.0f, 0.0f);
    v.x *= scale;
    v.y *= scale;
    half2 upper = __floats2half2_rn(v.x, v.y);
    half2* at = parts + (size_t)(i / 16) * tile * 32 + i % 16;
    at[0] = upper;
    at[16] = __floats2half2_rn(v.x - __low2float(upper), v.y - __high2float(upper));
  }
  if (t == 0) inverse[out_row] = __int_as_float((254 - exponent) << 23);
}

// Parts of 64 steps of k: each thread copies 16 bytes of every 32nd row.
__device__ void fetch(half* stage, const half* a, const half* b) {
  #pragma unroll
  for (int i = 0; i < 256; i += 32) {
    __pipeline_memcpy_async(stage + (i / 128 * 128 + i) * PITCH, a + i * 64, 16);
    __pipeline_memcpy_async(stage + (i / 128 * 128 + 128 + i) * PITCH, b + i * 64, 16);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
product(const half* a, const half* b, const float* a_inverse, const float* b_inverse, const float* bias, float* out,
        int n, int m, int chunks) {
  extern __shared__ __align__(128) half tiles[];
  int row0 = blockIdx.x * ROWS, column0 = blockIdx.y * COLUMNS, warp = threadIdx.x / 32, steps = chunks / 2;
  int r = threadIdx.x / 8, c = threadIdx.x % 8 * 8;
  a += (size_t)row0 * chunks * 64 + r * 64 + c;
  b += (size_t)column0 * chunks * 64 + r * 64 + c;
  half* mine = tiles + r * PITCH + c;
  Sum sum[4][2];
  for (int i = 0; i < 8; ++i) wmma::fill_fragment(sum[i / 2][i % 2], 0.0f);
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < steps) fetch(mine + step * STAGE, a, b);
    a += 2 * ROWS * 64;
    b += 2 * COLUMNS * 64;
    __pipeline_commit();
  }
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    if (step + STAGES - 1 < steps) fetch(mine + (step + STAGES - 1) % STAGES * STAGE, a, b);
    a += 2 * ROWS * 64;
    b += 2 * COLUMNS * 64;
    __pipeline_commit();
    const half* left = tiles + step % STAGES * STAGE + warp % 2 * 64 * PITCH;
    const half* right = tiles + step % STAGES * STAGE + (ROWS + warp / 2 * 32) * PITCH;
    Sum part[4][2];
    for (int i = 0; i < 8; ++i) wmma::fill_fragment(part[i / 2][i % 2], 0.0f);
    #pragma unroll
    for (int s = 0; s < 4; ++s) {
      int at = s / 2 * (ROWS + COLUMNS) * PITCH + s % 2 * 16;
      Left upper[4], lower[4];
      Right b_upper[2], b_lower[2];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        wmma::load_matrix_sync(upper[i], left + at + i * 16 * PITCH, PITCH);
        wmma::load_matrix_sync(lower[i], left + at + i * 16 * PITCH + 32, PITCH);
      }
      #pragma unroll
      for (int j = 0; j < 2; ++j) {
        wmma::load_matrix_sync(b_upper[j], right + at + j * 16 * PITCH, PITCH);
        wmma::load_matrix_sync(b_lower[j], right + at + j * 16 * PITCH + 32, PITCH);
      }
      #pragma unroll
      for (int i = 0; i < 8; ++i) wmma::mma_sync(part[i / 2][i % 2], upper[i / 2], b_lower[i % 2], part[i / 2][i % 2]);
      #pragma unroll
      for (int i = 0; i < 8; ++i) wmma::mma_sync(part[i / 2][i % 2], lower[i / 2], b_upper[i % 2], part[i / 2][i % 2]);
      #pragma unroll
      for (int i = 0; i < 8; ++i) wmma::mma_sync(part[i / 2][i % 2], upper[i / 2], b_upper[i % 2], part[i / 2][i % 2]);
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      for (int e = 0; e < sum[0][0].num_elements; ++e) sum[i / 2][i % 2].x[e] += part[i / 2][i % 2].x[e];
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  float* result = (float*)tiles;
  for (int i = 0; i < 8; ++i) {
    float* to = result + (warp % 2 * 64 + i / 2 * 16) * (COLUMNS + 8) + warp / 2 * 32 + i % 2 * 16;
    wmma::store_matrix_sync(to, sum[i / 2][i % 2], COLUMNS + 8, wmma::mem_row_major);
  }
  __syncthreads();
  int lane = threadIdx.x % COLUMNS, column = column0 + lane;
  if (column >= m) return;
  float scale = b_inverse[column], shift = bias[column];
  #pragma unroll 8
  for (int r = threadIdx.x / COLUMNS; r < min(ROWS, n - row0); r += 2) {
    float v = result[r * (COLUMNS + 8) + lane] * (a_inverse[row0 + r] * scale) + shift;
    out[(size_t)(row0 + r) * m + column] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}

// One block per row of at most 8,192 columns, which its threads keep in registers. Works in place.
extern "C" __global__ void softmax(float* x, int m) {
  __shared__ float tops[8], sums[8];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * m;
  float v[32], top = -CUDART_INF_F, sum = 0.0f;
  #pragma unroll
  for (int j = 0; j < 32; ++j) {
    v[j] = t + 256 * j < m ? x[t + 256 * j] : -CUDART_INF_F;
    top = fmaxf(top, v[j]);
  }
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  if (t % 32 == 0) tops[t / 32] = top;
  __syncthreads();
  for (int w = 0; w < 8; ++w) top = fmaxf(top, tops[w]);
  #pragma unroll
  for (int j = 0; j < 32; ++j) {
    v[j] = expf(v[j] - top);
    sum += v[j];
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (t % 32 == 0) sums[t / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; ++w) sum += sums[w];
  #pragma unroll
  for (int j = 0; j < 32; ++j) {
    if (t + 256 * j < m) x[t + 256 * j] = v[j] / sum;
  }
}
'''
split_rows = cp.RawKernel(source, "split_rows")
product = cp.RawKernel(source, "product")
softmax = cp.RawKernel(source, "softmax")
SHARED = 6 * 256 * 144
product.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight, bias):
    n, k = x.shape
    m = weight.shape[0]
    chunks, rows, columns = (k + 63) // 64 * 2, (n + 127) // 128 * 128, (m + 255) // 256 * 256
    left = cp.empty((rows, chunks * 64), cp.float16)
    right = cp.empty((columns, chunks * 64), cp.float16)
    left_inverse = cp.empty((rows,), cp.float32)
    right_inverse = cp.empty((columns,), cp.float32)
    out = cp.empty((n, m), cp.float32)
    split_rows((rows,), (256,), (x, left, left_inverse, n, k, chunks, 128))
    split_rows((columns,), (256,), (weight, right, right_inverse, m, k, chunks, 128))
    grid = (rows // 128, columns // 128)
    product(grid, (256,), (left, right, left_inverse, right_inverse, bias, out, n, m, chunks), shared_mem=SHARED)
    softmax((n,), (256,), (out, m))
    return out
