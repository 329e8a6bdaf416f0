"""TF32 tensor cores; the weights stay in registers while a block walks through a slab of three planes.

The convolution is a product of the weights (output channel by 27 taps x 3 input channels) with shifted x. A warp keeps
32 output channels of all weights in registers as fragments, so x is all that is ever loaded: a block takes 32 columns
of an output plane and goes down row by row, one row of the three planes and channels of x at a time in shared memory,
the next on its way. A fragment of x (9 taps x 3 channels, padded from 27 to 32, by 16 columns) serves all three rows
of taps at once, because the sums of three output rows are in flight. What lies behind an element of a fragment is an
offset into the tile, kept in registers; which element a lane holds is asked of the hardware once, by loading a table
of indices. Little but the outputs is left to move, and they leave through shared memory in runs. Three input channels,
3 x 3 x 3 taps.

Techniques: tensor cores, implicit matrix product, register-resident weights, rolling accumulators, double buffering
"""
import cupy as cp

source = r'''
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Places;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kSteps = 4;      // of 8 out of 27 (plane, column, channel) in a row of taps
const int kPitch = 40;     // of the 34 columns of a plane's row: times 3 it is 24 modulo 32, against bank conflicts
const int kTile = 9 * kPitch, kEach = (kTile + 127) / 128;
const int kOutPitch = 20;  // of an output channel's 16 columns: 4 modulo 8 for the same reason

// [16 output channels][row of taps][step][lane][4] as lanes hold them, rounded to TF32, zero where none is.
extern "C" __global__ void arrange(const float* w, float* arranged, int outputs) {
  __shared__ __align__(32) float table[128];
  for (int i = threadIdx.x; i < 128; i += 32) table[i] = i;
  __syncwarp();
  Weights held;
  wmma::load_matrix_sync(held, table, 8);
  int step = blockIdx.x % kSteps, dy = blockIdx.x / kSteps % 3;
  for (int e = 0; e < 4; ++e) {
    int i = held.x[e];
    int output = blockIdx.x / (3 * kSteps) * 16 + i / 8, k = step * 8 + i % 8;
    bool real = k < 27 && output < outputs;
    arranged[blockIdx.x * 128 + threadIdx.x * 4 + e] =
        real ? wmma::__float_to_tf32(w[(output * 3 + k % 3) * 27 + k / 9 * 9 + dy * 3 + k / 3 % 3]) : 0.0f;
  }
}

__device__ void take(Weights& weights, const float* from) {
  float4 four = ((const float4*)from)[threadIdx.x % 32];
  weights.x[0] = four.x;
  weights.x[1] = four.y;
  weights.x[2] = four.z;
  weights.x[3] = four.w;
}

extern "C" __global__ void __launch_bounds__(128, 2)
conv3d(const float* __restrict__ x, const float* __restrict__ arranged, float* __restrict__ out, int outputs,
       int size) {
  __shared__ __align__(32) float tiles[2][kTile];
  __shared__ __align__(32) float results[4][32 * kOutPitch];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size - 2, z = blockIdx.y % width, image = blockIdx.y / width;
  int channel = blockIdx.z * 64 + warp / 2 * 32;
  int column = blockIdx.x * 32 + warp % 2 * 16;

  // Where this lane's elements of a fragment lie. Columns of a fragment are dealt so that results meet no bank twice.
  float* mine = results[warp];
  for (int i = lane; i < 256; i += 32) mine[i] = i;
  __syncwarp();
  Places places;
  Sums sums[3][2];  // of output rows y, y - 1, y - 2
  wmma::load_matrix_sync(places, mine, 16);
  wmma::load_matrix_sync(sums[0][0], mine, 16, wmma::mem_row_major);
  __syncwarp();
  int from[kSteps][places.num_elements], to[sums[0][0].num_elements];
  for (int s = 0; s < kSteps; ++s) {
    for (int e = 0; e < places.num_elements; ++e) {
      int i = places.x[e], n = i % 16, k = s * 8 + i / 16;
      if (k >= 27) k = 0;  // any, as its weight is zero
      from[s][e] = (k % 3 * 3 + k / 9) * kPitch + k / 3 % 3 + warp % 2 * 16 + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
    }
  }
  for (int e = 0; e < sums[0][0].num_elements; ++e) {
    int i = sums[0][0].x[e], n = i % 16;
    to[e] = i / 16 * kOutPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  Weights weights[2][3 * kSteps];
  #pragma unroll
  for (int s = 0; s < 3 * kSteps; ++s) {
    for (int m = 0; m < 2; ++m) {
      take(weights[m][s], arranged + ((channel / 16 + m) * 3 * kSteps + s) * 128);
    }
  }
  for (int k = 0; k < 3; ++k) {
    for (int m = 0; m < 2; ++m) wmma::fill_fragment(sums[k][m], 0.0f);
  }

  // The elements of every row that this thread loads.
  bool wanted[kEach];
  const float* source[kEach];
  float next[kEach];
  for (int j = 0; j < kEach; ++j) {
    int i = t + 128 * j, c = i / kPitch / 3, plane = i / kPitch % 3, p = blockIdx.x * 32 + i % kPitch;
    wanted[j] = i < kTile && i % kPitch < 34 && p < size;
    source[j] = x + (((size_t)image * 3 + c) * size + z + plane) * size * size + p;
    if (i < kTile) tiles[0][i] = wanted[j] ? wmma::__float_to_tf32(*source[j]) : 0.0f;
  }
  __syncthreads();
  size_t volume = (size_t)width * width * width;
  int high = lane / 16 * 4, place = column + lane % 16;
  float* target = out + ((size_t)image * outputs + channel + high) * volume + (size_t)z * width * width + place;

  for (int y = 0; y < size; ++y) {
    for (int j = 0; j < kEach; ++j) next[j] = y + 1 < size && wanted[j] ? source[j][(y + 1) * size] : 0.0f;
    const float* here = tiles[y % 2];
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      for (int e = 0; e < places.num_elements; ++e) places.x[e] = here[from[s][e]];
      for (int k = 0; k < 3; ++k) {
        for (int m = 0; m < 2; ++m) wmma::mma_sync(sums[k][m], weights[m][k * kSteps + s], places, sums[k][m]);
      }
    }
    if (y >= 2) {
      for (int m = 0; m < 2; ++m) {
        for (int e = 0; e < sums[2][m].num_elements; ++e) mine[m * 16 * kOutPitch + to[e]] = sums[2][m].x[e];
      }
      __syncwarp();
      #pragma unroll 4
      for (int i = 0; i < 16; ++i) {
        int c = i / 4 * 8 + i % 4;
        float value = mine[(c + high) * kOutPitch + lane % 16];
        if (place < width && channel + high + c < outputs) target[c * volume] = value;
      }
      __syncwarp();
      target += width;
    }
    for (int m = 0; m < 2; ++m) {
      sums[2][m] = sums[1][m];
      sums[1][m] = sums[0][m];
      wmma::fill_fragment(sums[0][m], 0.0f);
    }
    for (int j = 0; j < kEach; ++j) {
      if (t + 128 * j < kTile) tiles[(y + 1) % 2][t + 128 * j] = wmma::__float_to_tf32(next[j]);
    }
    __syncthreads();
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
conv3d = cp.RawKernel(source, "conv3d")


def forward(x, weight):
    batch, _, size = x.shape[:3]
    outputs = weight.shape[0]
    width = size - 2
    groups = (outputs + 63) // 64
    arranged = cp.empty((4 * groups * 12 * 128,), cp.float32)
    out = cp.empty((batch, outputs, width, width, width), cp.float32)
    arrange((4 * groups * 12,), (32,), (weight, arranged, outputs))
    conv3d(((width + 31) // 32, batch * width, groups), (128,), (x, arranged, out, outputs, size))
    return out
