"""TF32 tensor cores; the weights stay in registers while a block walks along the signal.

A transposed convolution of stride 1 is a product of the weights (output channel by 3 taps x input channels) with the
signal shifted back by a tap. All 384 weights of 128 output channels just fit into the registers of a multiprocessor:
each of eight warps keeps those of 32 output channels and half of the input channels as fragments, so the signal is all
that is ever loaded. The block goes through it 32 positions at a time, all channels in shared memory, the next ones on
their way meanwhile. The two halves of a sum meet in shared memory and leave in runs of 128 bytes while the next
positions are multiplied; the warps of one half do that before their products, the others after, so that tensor cores
are not left idle. Fragments of the signal are filled by hand, because the shift by a tap breaks the alignment that
load_matrix_sync wants; which element a lane holds is asked of the hardware once, by loading a table of indices. Up to
128 input channels (fewer are padded with zeros), any number of output channels, 3 taps.

Techniques: tensor cores, implicit matrix product, register-resident weights, split sums, asynchronous copies
"""
import cupy as cp

source = r'''
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Signal;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kInputs = 128, kGroups = kInputs / 8, kSteps = 3 * kGroups;
const int kPitch = 40;     // of a channel's 36 positions: 8 modulo 32, so that a fragment meets no bank twice
const int kOutPitch = 36;  // of an output channel's 32 positions: 4 modulo 8 for the same reason
const int kTile = kInputs * kPitch, kResult = 32 * kOutPitch;

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
        real ? wmma::__float_to_tf32(w[(input * outputs + output) * 3 + tap]) : 0.0f;
  }
}

__device__ void take(Weights& weights, const float* from) {
  float4 four = ((const float4*)from)[threadIdx.x % 32];
  weights.x[0] = four.x;
  weights.x[1] = four.y;
  weights.x[2] = four.z;
  weights.x[3] = four.w;
}

// Positions start - 4 to start + 31 of every channel, `width` at a time; zero outside the signal.
template <int width>
__device__ void stage(float* tile, const float* x, int inputs, int length, int start) {
  for (int i = threadIdx.x; i < kInputs * 36 / width; i += 256) {
    int c = i / (36 / width), p = i % (36 / width) * width;
    bool real = c < inputs && start + p >= 4 && start + p - 4 < length;
    const float* from = real ? x + (size_t)c * length + start + p - 4 : x;
    __pipeline_memcpy_async(tile + c * kPitch + p, from, 4 * width, real ? 0 : 4 * width);
  }
  __pipeline_commit();
}

__device__ void stage(float* tile, const float* x, int inputs, int length, int start) {
  if (length % 4 == 0) stage<4>(tile, x, inputs, length, start);
  else stage<1>(tile, x, inputs, length, start);
}

// 16 rows of results, which are the sums of both halves.
__device__ void leave(const float* results, float* target, int channels, int positions, size_t width) {
  int lane = threadIdx.x % 32;
  #pragma unroll 4
  for (int c = 0; c < 16; ++c) {
    float sum = results[c * kOutPitch + lane] + results[4 * kResult + c * kOutPitch + lane];
    if (lane < positions && c < channels) target[c * width] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(256, 1)
transposed(const float* __restrict__ x, const float* __restrict__ arranged, float* __restrict__ out, int inputs,
           int outputs, int length, int span) {
  extern __shared__ __align__(32) float shared[];
  float* tiles = shared;                // [2][input channel][position]
  float* results = shared + 2 * kTile;  // [2][half][group of 32 output channels][output channel][position]
  int lane = threadIdx.x % 32, group = threadIdx.x / 32 % 4, half = threadIdx.x / 128;
  int width = length + 2;
  int first = blockIdx.x * span, end = min(first + span, width);
  int channel = blockIdx.y * 128 + group * 32;
  x += (size_t)blockIdx.z * inputs * length;
  stage(tiles, x, inputs, length, first);

  // Where this lane's elements of a fragment lie. Columns of a fragment are dealt so that results meet no bank twice.
  float* mine = results + (half * 4 + group) * kResult;
  for (int i = lane; i < 256; i += 32) mine[i] = i;
  __syncwarp();
  Signal signal;
  Sums sums[2];
  wmma::load_matrix_sync(signal, mine, 16);
  wmma::load_matrix_sync(sums[0], mine, 16, wmma::mem_row_major);
  int from[signal.num_elements], to[sums[0].num_elements];
  for (int e = 0; e < signal.num_elements; ++e) {
    int i = signal.x[e], n = i % 16;
    from[e] = (half * kInputs / 2 + i / 16) * kPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  for (int e = 0; e < sums[0].num_elements; ++e) {
    int i = sums[0].x[e], n = i % 16;
    to[e] = i / 16 * kOutPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  Weights weights[2][kSteps / 2];
  #pragma unroll
  for (int s = 0; s < kSteps / 2; ++s) {
    int step = s / (kGroups / 2) * kGroups + half * kGroups / 2 + s % (kGroups / 2);
    for (int m = 0; m < 2; ++m) {
      take(weights[m][s], arranged + ((channel / 16 + m) * kSteps + step) * 128);
    }
  }

  // This warp's share of the way out.
  int channels = outputs - channel - half * 16;
  float* target = out + (blockIdx.z * (size_t)outputs + channel + half * 16) * width + lane;
  const float* halves = results + group * kResult + half * 16 * kOutPitch;
  int turn = 0;
  for (int start = first; start < end; start += 32, turn ^= 1) {
    const float* here = tiles + turn * kTile;
    __pipeline_wait_prior(0);
    __syncthreads();
    if (start + 32 < end) stage(tiles + (turn ^ 1) * kTile, x, inputs, length, start + 32);
    bool before = start > first;  // results of the positions before these are there
    if (before && half == 0) leave(halves + (turn ^ 1) * 8 * kResult, target + start - 32, channels, 32, width);
    for (int n = 0; n < 2; ++n) {
      for (int m = 0; m < 2; ++m) wmma::fill_fragment(sums[m], 0.0f);
      #pragma unroll
      for (int s = 0; s < kSteps / 2; ++s) {
        int shift = 4 - s / (kGroups / 2) + n * 16 + s % (kGroups / 2) * 8 * kPitch;
        for (int e = 0; e < signal.num_elements; ++e) signal.x[e] = wmma::__float_to_tf32(here[from[e] + shift]);
        for (int m = 0; m < 2; ++m) wmma::mma_sync(sums[m], weights[m][s], signal, sums[m]);
      }
      float* there = mine + turn * 8 * kResult + n * 16;
      for (int m = 0; m < 2; ++m) {
        for (int e = 0; e < sums[m].num_elements; ++e) there[m * 16 * kOutPitch + to[e]] = sums[m].x[e];
      }
    }
    if (before && half == 1) leave(halves + (turn ^ 1) * 8 * kResult, target + start - 32, channels, 32, width);
  }
  __syncthreads();
  int last = first + (end - first - 1) / 32 * 32;
  leave(halves + (turn ^ 1) * 8 * kResult, target + last, channels, end - last, width);
}
'''
arrange = cp.RawKernel(source, "arrange")
transposed = cp.RawKernel(source, "transposed")
SHARED = 4 * (2 * 128 * 40 + 16 * 32 * 36)
transposed.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight):
    batch, inputs, length = x.shape
    outputs = weight.shape[1]
    groups = (outputs + 127) // 128
    width = length + 2
    span = (width + 33 * 32 - 1) // (33 * 32) * 32  # 33 parts of 64 signals are 16 times the 132 multiprocessors
    parts = (width + span - 1) // span
    arranged = cp.empty((8 * groups * 48 * 128,), cp.float32)
    out = cp.empty((batch, outputs, width), cp.float32)
    arrange((8 * groups * 48,), (32,), (weight, arranged, inputs, outputs))
    args = (x, arranged, out, inputs, outputs, length, span)
    transposed((parts, groups, batch), (256,), args, shared_mem=SHARED)
    return out
