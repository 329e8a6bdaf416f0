"""TF32 tensor cores; the weights stay in registers while a block walks down the image.

A transposed convolution of stride 1 is a product of the weights (output channel by 9 taps x input channels) with
shifted x. All 576 weights of 64 output channels just fit into the registers of a multiprocessor: each of eight warps
keeps those of 32 output channels and 16 input channels as fragments, so x is all that is ever loaded. A block takes 16
columns and goes down row by row, one row of x (all channels) at a time in shared memory, the next on its way. A
fragment of x serves all three rows of taps at once, because the sums of three output rows are in flight, and so feeds
six products. The four parts of a sum meet in shared memory and leave while the next row is multiplied; half of the
warps do that before their products, half after, so that tensor cores are not left idle. Fragments of x are filled by
hand, because the shift by a tap breaks the alignment that load_matrix_sync wants; which element a lane holds is asked
of the hardware once, by loading a table of indices. Up to 64 input channels (fewer are padded with zeros), any number
of output channels, 3 x 3 taps.

Techniques: tensor cores, implicit matrix product, register-resident weights, rolling accumulators, split sums
"""
import cupy as cp

source = r'''
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Pixels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kInputs = 64, kGroups = kInputs / 8, kSteps = 9 * kGroups;
const int kPitch = 24;     // of a channel's 20 pixels: 8 modulo 16, so that a fragment meets no bank twice
const int kOutPitch = 20;  // of an output channel's 16 pixels: 4 modulo 8 for the same reason
const int kTile = kInputs * kPitch, kPart = 32 * kOutPitch;

// [16 output channels][tap][group of 8 inputs][lane][4] as lanes hold them, rounded to TF32, zero where none is.
extern "C" __global__ void arrange(const float* w, float* arranged, int inputs, int outputs) {
  __shared__ __align__(32) float table[128];
  for (int i = threadIdx.x; i < 128; i += 32) table[i] = i;
  __syncwarp();
  Weights held;
  wmma::load_matrix_sync(held, table, 8);
  int step = blockIdx.x % kSteps;
  for (int e = 0; e < 4; ++e) {
    int i = held.x[e];
    int output = blockIdx.x / kSteps * 16 + i / 8, input = step % kGroups * 8 + i % 8, tap = step / kGroups;
    bool real = input < inputs && output < outputs;
    arranged[blockIdx.x * 128 + threadIdx.x * 4 + e] =
        real ? wmma::__float_to_tf32(w[(input * outputs + output) * 9 + tap]) : 0.0f;
  }
}

__device__ void take(Weights& weights, const float* from) {
  float4 four = ((const float4*)from)[threadIdx.x % 32];
  weights.x[0] = four.x;
  weights.x[1] = four.y;
  weights.x[2] = four.z;
  weights.x[3] = four.w;
}

// Columns first - 4 to first + 15 of a row of every channel, `width` at a time; zero outside the image.
template <int width>
__device__ void stage(float* tile, const float* x, int inputs, int size, int row, int first) {
  for (int i = threadIdx.x; i < kInputs * 20 / width; i += 256) {
    int c = i / (20 / width), p = i % (20 / width) * width, column = first + p - 4;
    bool real = c < inputs && row >= 0 && row < size && column >= 0 && column < size;
    const float* from = real ? x + ((size_t)c * size + row) * size + column : x;
    __pipeline_memcpy_async(tile + c * kPitch + p, from, 4 * width, real ? 0 : 4 * width);
  }
  __pipeline_commit();
}

__device__ void stage(float* tile, const float* x, int inputs, int size, int row, int first) {
  if (size % 4 == 0) stage<4>(tile, x, inputs, size, row, first);
  else stage<1>(tile, x, inputs, size, row, first);
}

// Eight output channels of a row: each result is the sum of four parts.
__device__ void leave(const float* parts, float* target, int channels, size_t plane) {
  for (int c = 0; c < 4; ++c) {
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) sum += parts[k * 2 * kPart + c * kOutPitch];
    if (c < channels) target[c * plane] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(256, 1)
transposed(const float* __restrict__ x, const float* __restrict__ arranged, float* __restrict__ out, int inputs,
           int outputs, int size) {
  extern __shared__ __align__(32) float shared[];
  float* tiles = shared;              // [2][input channel][column]
  float* parts = shared + 2 * kTile;  // [2][16 input channels][32 output channels][output channel][column]
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp % 2, part = warp / 2;
  int width = size + 2;
  int first = blockIdx.x * 16;
  x += (size_t)blockIdx.z * inputs * size * size;
  stage(tiles, x, inputs, size, 0, first);

  // Where this lane's elements of a fragment lie. Columns of a fragment are dealt so that results meet no bank twice.
  float* mine = parts + warp * kPart;
  for (int i = lane; i < 256; i += 32) mine[i] = i;
  __syncwarp();
  Pixels pixels;
  Sums sums[3][2];  // of output rows y, y + 1, y + 2
  wmma::load_matrix_sync(pixels, mine, 16);
  wmma::load_matrix_sync(sums[0][0], mine, 16, wmma::mem_row_major);
  int from[pixels.num_elements], to[sums[0][0].num_elements];
  for (int e = 0; e < pixels.num_elements; ++e) {
    int i = pixels.x[e], n = i % 16;
    from[e] = (part * 16 + i / 16) * kPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  for (int e = 0; e < sums[0][0].num_elements; ++e) {
    int i = sums[0][0].x[e], n = i % 16;
    to[e] = i / 16 * kOutPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  Weights weights[2][kSteps / 4];  // [16 outputs][tap][8 inputs]
  #pragma unroll
  for (int s = 0; s < kSteps / 4; ++s) {
    int step = s / 2 * kGroups + part * 2 + s % 2;
    for (int m = 0; m < 2; ++m) {
      take(weights[m][s], arranged + ((blockIdx.y * 4 + group * 2 + m) * kSteps + step) * 128);
    }
  }
  for (int k = 0; k < 3; ++k) {
    for (int m = 0; m < 2; ++m) wmma::fill_fragment(sums[k][m], 0.0f);
  }

  // This thread's share of the way out: a column of four channels.
  size_t plane = (size_t)width * width;
  int output = warp * 8 + lane / 16 * 4, column = first + lane % 16;
  int channels = column < width ? outputs - (int)blockIdx.y * 64 - output : 0;
  const float* share = parts + output / 32 * kPart + output % 32 * kOutPitch + lane % 16;
  float* target = out + ((size_t)blockIdx.z * outputs + blockIdx.y * 64 + output) * plane + column;
  for (int y = 0; y < width; ++y) {
    const float* here = tiles + y % 2 * kTile;
    __pipeline_wait_prior(0);
    __syncthreads();
    stage(tiles + (y + 1) % 2 * kTile, x, inputs, size, y + 1, first);
    const float* before = share + (y + 1) % 2 * 8 * kPart;
    if (y > 0 && warp < 4) leave(before, target + (size_t)(y - 1) * width, channels, plane);
    #pragma unroll
    for (int s = 0; s < 6; ++s) {
      int shift = 4 - s / 2 + s % 2 * 8 * kPitch;
      for (int e = 0; e < pixels.num_elements; ++e) pixels.x[e] = wmma::__float_to_tf32(here[from[e] + shift]);
      for (int k = 0; k < 3; ++k) {
        for (int m = 0; m < 2; ++m) wmma::mma_sync(sums[k][m], weights[m][k * 6 + s], pixels, sums[k][m]);
      }
    }
    for (int m = 0; m < 2; ++m) {
      float* there = mine + y % 2 * 8 * kPart + m * 16 * kOutPitch;
      for (int e = 0; e < sums[0][m].num_elements; ++e) there[to[e]] = sums[0][m].x[e];
      sums[0][m] = sums[1][m];
      sums[1][m] = sums[2][m];
      wmma::fill_fragment(sums[2][m], 0.0f);
    }
    if (y > 0 && warp >= 4) leave(before, target + (size_t)(y - 1) * width, channels, plane);
  }
  __syncthreads();
  leave(share + (width - 1) % 2 * 8 * kPart, target + (size_t)(width - 1) * width, channels, plane);
}
'''
arrange = cp.RawKernel(source, "arrange")
transposed = cp.RawKernel(source, "transposed")
SHARED = 4 * (2 * 64 * 24 + 16 * 32 * 20)
transposed.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight):
    batch, inputs, size, _ = x.shape
    outputs = weight.shape[1]
    width = size + 2
    groups = (outputs + 63) // 64
    arranged = cp.empty((4 * groups * 72 * 128,), cp.float32)
    out = cp.empty((batch, outputs, width, width), cp.float32)
    arrange((4 * groups * 72,), (32,), (weight, arranged, inputs, outputs))
    grid = ((width + 15) // 16, groups, batch)
    transposed(grid, (256,), (x, arranged, out, inputs, outputs, size), shared_mem=SHARED)
    return out
