"""TF32 tensor cores; the weights stay in registers while a block walks along the signal.

The convolution is a product of the weights (output channel by 3 taps x input channels) with the shifted signal. A warp
keeps 32 output channels of all 192 weights in registers as fragments, so the signal is all that is ever loaded: a
block of four warps goes through it 32 positions at a time, all channels in shared memory, the next ones on their way
meanwhile. A fragment of the signal is filled by hand, because the shift by a tap breaks the alignment that
load_matrix_sync wants; which element a lane holds is asked of the hardware once, by loading a table of indices. Sums
leave through shared memory in runs of 128 bytes, whatever the length of a row. Two blocks on a multiprocessor cover
each other's barriers. Up to 64 input channels (fewer are padded with zeros), any number of output channels, 3 taps.

Techniques: tensor cores, implicit matrix product, register-resident weights, asynchronous copies, double buffering
"""
import cupy as cp

source = r'''
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Signal;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kInputs = 64, kGroups = kInputs / 8, kSteps = 3 * kGroups;
const int kPitch = 40;     // of a channel's 34 positions: 8 modulo 32, so that a fragment meets no bank twice
const int kOutPitch = 36;  // of an output channel's 32 positions: 4 modulo 8 for the same reason

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
        real ? wmma::__float_to_tf32(w[(output * inputs + input) * 3 + tap]) : 0.0f;
  }
}

__device__ void take(Weights& weights, const float* from) {
  float4 four = ((const float4*)from)[threadIdx.x % 32];
  weights.x[0] = four.x;
  weights.x[1] = four.y;
  weights.x[2] = four.z;
  weights.x[3] = four.w;
}

// Positions start to start + 35 of every channel, `width` at a time; zero beyond the signal.
template <int width>
__device__ void stage(float* tile, const float* x, int inputs, int length, int start) {
  for (int i = threadIdx.x; i < kInputs * 36 / width; i += 128) {
    int c = i / (36 / width), p = i % (36 / width) * width;
    bool real = c < inputs && start + p < length;
    const float* from = real ? x + (size_t)c * length + start + p : x;
    __pipeline_memcpy_async(tile + c * kPitch + p, from, 4 * width, real ? 0 : 4 * width);
  }
  __pipeline_commit();
}

__device__ void stage(float* tile, const float* x, int inputs, int length, int start) {
  if (length % 4 == 0) stage<4>(tile, x, inputs, length, start);
  else stage<1>(tile, x, inputs, length, start);
}

extern "C" __global__ void __launch_bounds__(128, 2)
conv1d(const float* __restrict__ x, const float* __restrict__ arranged, float* __restrict__ out, int inputs,
       int outputs, int length, int span) {
  __shared__ __align__(32) float tiles[2][kInputs * kPitch];
  __shared__ __align__(32) float results[4][32 * kOutPitch];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int width = length - 2;
  int first = blockIdx.x * span, end = min(first + span, width);
  int channel = blockIdx.y * 128 + warp * 32;
  x += (size_t)blockIdx.z * inputs * length;
  stage(tiles[0], x, inputs, length, first);

  // Where this lane's elements of a fragment lie. Columns of a fragment are dealt so that results meet no bank twice.
  float* mine = results[warp];
  for (int i = lane; i < 256; i += 32) mine[i] = i;
  __syncwarp();
  Signal signal;
  Sums sums[2];
  wmma::load_matrix_sync(signal, mine, 16);
  wmma::load_matrix_sync(sums[0], mine, 16, wmma::mem_row_major);
  int from[signal.num_elements], to[sums[0].num_elements];
  for (int e = 0; e < signal.num_elements; ++e) {
    int i = signal.x[e], n = i % 16;
    from[e] = i / 16 * kPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  for (int e = 0; e < sums[0].num_elements; ++e) {
    int i = sums[0].x[e], n = i % 16;
    to[e] = i / 16 * kOutPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  __syncwarp();
  Weights weights[2][kSteps];
  #pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    for (int m = 0; m < 2; ++m) {
      take(weights[m][s], arranged + ((channel / 16 + m) * kSteps + s) * 128);
    }
  }

  float* target = out + (blockIdx.z * (size_t)outputs + channel) * width + first + lane;
  for (int start = first; start < end; start += 32) {
    const float* here = tiles[(start - first) / 32 % 2];
    __pipeline_wait_prior(0);
    __syncthreads();
    if (start + 32 < end) stage(tiles[((start - first) / 32 + 1) % 2], x, inputs, length, start + 32);
    for (int n = 0; n < 2; ++n) {
      for (int m = 0; m < 2; ++m) wmma::fill_fragment(sums[m], 0.0f);
      #pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        for (int e = 0; e < signal.num_elements; ++e) {
          signal.x[e] = wmma::__float_to_tf32(here[from[e] + n * 16 + s % kGroups * 8 * kPitch + s / kGroups]);
        }
        for (int m = 0; m < 2; ++m) wmma::mma_sync(sums[m], weights[m][s], signal, sums[m]);
      }
      for (int m = 0; m < 2; ++m) {
        for (int e = 0; e < sums[m].num_elements; ++e) mine[m * 16 * kOutPitch + n * 16 + to[e]] = sums[m].x[e];
      }
    }
    __syncwarp();
    #pragma unroll 4
    for (int c = 0; c < 32; ++c) {
      if (start + lane < end && channel + c < outputs) target[(size_t)c * width] = mine[c * kOutPitch + lane];
    }
    __syncwarp();
    target += 32;
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
conv1d = cp.RawKernel(source, "conv1d")


def forward(x, weight):
    batch, inputs, length = x.shape
    outputs = weight.shape[0]
    groups = (outputs + 127) // 128
    span = 1024
    arranged = cp.empty((8 * groups * 24 * 128,), cp.float32)
    out = cp.empty((batch, outputs, length - 2), cp.float32)
    arrange((8 * groups * 24,), (32,), (weight, arranged, inputs, outputs))
    grid = ((length - 2 + span - 1) // span, groups, batch)
    conv1d(grid, (128,), (x, arranged, out, inputs, outputs, length, span))
    return out
