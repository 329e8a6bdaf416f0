"""TF32 tensor cores on an implicit matrix product, with tiles of flattened planes.

A transposed convolution of stride 1 is a product of the weights (output channel by 27 taps x input channels) with
shifted x. A plane padded by two zeros on every side is one run of numbers, in which a tap is a constant shift, so a
block takes 512 neighbouring places of an output plane with no regard to rows (2 of 68 columns are for nothing) and 48
output channels. It goes through planes of taps and groups of 8 input channels: a step brings the padded run of x,
zeros included, and nine taps of weights to shared memory, while the step before is multiplied. A warp keeps sums for
48 channels x 64 places, so that each fragment loaded is used three or four times. Weights are arranged beforehand in
the order in which lanes hold them, one float4 each; fragments of x are filled by hand, because a shift breaks the
alignment that load_matrix_sync wants. Which element a lane holds is asked of the hardware by loading a table of
indices. Input planes outside x are left out. Planes of up to 64 x 64, 3 x 3 x 3 taps.

Techniques: tensor cores, implicit matrix product, register tiling, asynchronous copies, double buffering
"""
import cupy as cp

source = r'''
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Places;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kWarps = 8, kThreads = 32 * kWarps, kPlaces = 64 * kWarps;
const int kPitch = kPlaces + 168;       // of a channel: room for two more rows, and 8 modulo 32 against bank conflicts
const int kOutPitch = 68;               // of an output channel's 64 places: 4 modulo 8 for the same reason
const int kTaps = 9 * 3 * 128;          // weights of a step: 9 taps x 48 output channels x 8 input channels
const int kStage = kTaps + 8 * kPitch;  // weights and x of a step
const int kEach = (kPitch + kThreads - 1) / kThreads;

// [48 outputs][plane of taps][8 inputs][tap][16 outputs][lane][4], rounded to TF32, zero where no such channel is.
extern "C" __global__ void arrange(const float* w, float* arranged, int inputs, int outputs, int groups) {
  __shared__ __align__(32) float table[128];
  for (int i = threadIdx.x; i < 128; i += 32) table[i] = i;
  __syncwarp();
  Weights places;
  wmma::load_matrix_sync(places, table, 8);
  int tap = blockIdx.x / 3 % 9 + blockIdx.x / (27 * groups) % 3 * 9;
  for (int e = 0; e < 4; ++e) {
    int i = places.x[e];
    int output = blockIdx.x / (81 * groups) * 48 + blockIdx.x % 3 * 16 + i / 8;
    int input = blockIdx.x / 27 % groups * 8 + i % 8;
    bool real = input < inputs && output < outputs;
    arranged[blockIdx.x * 128 + threadIdx.x * 4 + e] =
        real ? wmma::__float_to_tf32(w[(input * outputs + output) * 27 + tap]) : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 8 / kWarps)
transposed(const float* __restrict__ x, const float* __restrict__ arranged, float* __restrict__ out, int inputs,
           int outputs, int size, int groups) {
  extern __shared__ __align__(32) float shared[];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size + 2, padded = size + 4;
  int first = blockIdx.x * kPlaces;
  int z = blockIdx.y % width, image = blockIdx.y / width;
  arranged += (size_t)blockIdx.z * 3 * groups * kTaps;

  // Where this lane's elements of a fragment lie. Columns of a fragment are dealt so that results meet no bank twice.
  for (int i = t; i < 256; i += kThreads) shared[i] = i;
  __syncthreads();
  Places places;
  Sums sums[3][4];
  wmma::load_matrix_sync(places, shared, 16);
  wmma::load_matrix_sync(sums[0][0], shared, 16, wmma::mem_row_major);
  int from[4], to[8];
  for (int e = 0; e < 4; ++e) {
    int i = places.x[e], n = i % 16;
    from[e] = kTaps + i / 16 * kPitch + warp * 64 + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  for (int e = 0; e < 8; ++e) {
    int i = sums[0][0].x[e], n = i % 16;
    to[e] = warp * 16 * kOutPitch + i / 16 * kOutPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  __syncthreads();
  for (int m = 0; m < 3; ++m) {
    for (int n = 0; n < 4; ++n) wmma::fill_fragment(sums[m][n], 0.0f);
  }

  // The places of a plane of x that this thread loads, -1 where the padding is.
  int place[kEach];
  for (int j = 0; j < kEach; ++j) {
    int i = first + t + j * kThreads, row = i / padded - 2, column = i % padded - 2;
    bool inside = row >= 0 && row < size && column >= 0 && column < size;
    place[j] = inside ? row * size + column : -1;
  }
  auto stage = [&](float* to, int plane, int group) {
    const float4* weights = (const float4*)(arranged + (plane * groups + group) * kTaps);
    for (int i = t; i < kTaps / 4; i += kThreads) __pipeline_memcpy_async((float4*)to + i, weights + i, 16);
    const float* from = x + (((size_t)image * inputs + group * 8) * size + z - plane) * size * size;
    for (int j = 0; j < kEach; ++j) {
      if (t + j * kThreads >= kPitch) continue;
      for (int c = 0; c < 8; ++c) {
        bool real = place[j] >= 0 && group * 8 + c < inputs;
        const float* source = real ? from + (size_t)c * size * size * size + place[j] : x;
        __pipeline_memcpy_async(to + kTaps + c * kPitch + t + j * kThreads, source, 4, real ? 0 : 4);
      }
    }
    __pipeline_commit();
  };

  int plane = max(0, z - size + 1), steps = (min(2, z) - plane + 1) * groups, group = 0;
  stage(shared, plane, group);
  for (int step = 0; step < steps; ++step) {
    const float* here = shared + step % 2 * kStage;
    __pipeline_wait_prior(0);
    __syncthreads();
    if (++group == groups) group = 0, ++plane;
    if (step + 1 < steps) stage(shared + (step + 1) % 2 * kStage, plane, group);
    #pragma unroll 1
    for (int dy = 0; dy < 3; ++dy) {
      #pragma unroll
      for (int dx = 0; dx < 3; ++dx) {
        Weights weights[3];
        for (int m = 0; m < 3; ++m) {
          float4 four = *(const float4*)(here + ((dy * 3 + dx) * 3 + m) * 128 + lane * 4);
          weights[m].x[0] = four.x;
          weights[m].x[1] = four.y;
          weights[m].x[2] = four.z;
          weights[m].x[3] = four.w;
        }
        for (int n = 0; n < 4; ++n) {
          for (int e = 0; e < 4; ++e) {
            places.x[e] = wmma::__float_to_tf32(here[from[e] + (2 - dy) * padded + 2 - dx + n * 16]);
          }
          for (int m = 0; m < 3; ++m) wmma::mma_sync(sums[m][n], weights[m], places, sums[m][n]);
        }
      }
    }
  }

  __syncthreads();
  #pragma unroll
  for (int m = 0; m < 3; ++m) {
    for (int n = 0; n < 4; ++n) {
      for (int e = 0; e < 8; ++e) shared[to[e] + n * 16] = sums[m][n].x[e];
    }
    __syncwarp();
    for (int h = 0; h < 2; ++h) {
      int i = first + warp * 64 + h * 32 + lane, row = i / padded, column = i % padded;
      int channel = blockIdx.z * 48 + m * 16;
      float* target = out + (((size_t)image * outputs + channel) * width + z) * width * width + row * width + column;
      for (int c = 0; c < 16; ++c) {
        if (row < width && column < width && channel + c < outputs) {
          target[(size_t)c * width * width * width] = shared[(warp * 16 + c) * kOutPitch + h * 32 + lane];
        }
      }
    }
    __syncwarp();
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
transposed = cp.RawKernel(source, "transposed")
WARPS = 8
SHARED = 2 * 4 * (9 * 3 * 128 + 8 * (64 * WARPS + 168))
transposed.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight):
    batch, inputs, size = x.shape[:3]
    outputs = weight.shape[1]
    width = size + 2
    groups = (inputs + 7) // 8
    blocks = (outputs + 47) // 48
    arranged = cp.empty((blocks * 3 * groups * 9 * 3 * 128,), cp.float32)
    out = cp.empty((batch, outputs, width, width, width), cp.float32)
    arrange((arranged.size // 128,), (32,), (weight, arranged, inputs, outputs, groups))
    places = width * (size + 4)
    grid = ((places + 64 * WARPS - 1) // (64 * WARPS), batch * width, blocks)
    args = (x, arranged, out, inputs, outputs, size, groups)
    transposed(grid, (32 * WARPS,), args, shared_mem=SHARED)
    return out
