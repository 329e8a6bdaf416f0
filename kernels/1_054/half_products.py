"""Products of halves on tensor cores; the weights stay in registers while a block walks through a slab of three planes.

The convolution is a product of the weights (output channel by 27 taps x 3 input channels) with shifted x. TF32 and half
round to the same eleven bits, but tensor cores multiply halves several times faster. What half lacks is range: so the
weights of each output channel are scaled by a power of two beforehand, and x by one that follows the largest of the
last three rows of the block. When that leaves a window of twelve binades, rows in shared memory are scaled anew. An
element is thus rounded to eleven bits, or by 2^-29 of the largest nearby where that is more; sums are float.

Three planes of three channels are taken as nine channels (16 with zeros) of a 2-D convolution. A warp keeps 16 output
channels of its weights in registers as fragments. A block takes a plane of the output and goes down row by row, with
the last rows of x as halves in shared memory, channels fastest, and the next one on its way. The columns of a fragment
are four places apart, so that a tap is a shift by whole places, which keeps load_matrix_sync aligned, and a loaded
fragment serves three taps. Four sums of a lane are then neighbours in the output: as float4 they pass through shared
memory, and leave in whole rows. Which element a lane holds is asked of the hardware, by loading a table. Three input
channels of up to 64 x 64 x 64, any number of output channels, 3 x 3 x 3 taps.

Techniques: tensor cores, scaled halves, implicit matrix product, register-resident weights, asynchronous copies
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Places;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sums;

const int kStrip = 6 * 16 + 8;  // four places of 16 channels and the next two; 8 against bank conflicts
const int kRow = 16 * kStrip;   // 64 places
const int kPitch = 68;          // of an output channel's 64 columns: 4 modulo 8 against bank conflicts
const int kResults = 16 * kPitch, kRaw = 5 * 128;

// The power of two that brings `top` to [2^14, 2^15), and its inverse.
__device__ float scale_of(float top) { return __int_as_float(min(268 - (__float_as_int(top) >> 23), 253) << 23); }
__device__ float inverse_of(float scale) { return __int_as_float((254 << 23) - __float_as_int(scale)); }

__device__ float largest(float top) { return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(top))); }

// Which of the nine (channel, plane) is at a place among 16: five in the first half and four in the second, else none.
__device__ int channel_at(int i) { return i % 8 < 5 && i < 12 ? i / 8 * 5 + i % 8 : -1; }

// One output channel: weights as halves, [16 outputs][tap][output][16 channels], zero where none is.
extern "C" __global__ void arrange(const float* w, half* arranged, float* inverse, int outputs) {
  int output = blockIdx.x, lane = threadIdx.x;
  bool real = output < outputs;
  w += output * 81;
  float top = 0.0f;
  for (int i = lane; real && i < 81; i += 32) top = fmaxf(top, fabsf(w[i]));
  float scale = scale_of(largest(top));
  for (int i = lane; i < 144; i += 32) {
    int tap = i / 16, c = channel_at(i % 16);
    half weight = __float2half(real && c >= 0 ? w[c * 9 + tap] * scale : 0.0f);
    arranged[(output / 16 * 9 + tap) * 256 + output % 16 * 16 + i % 16] = weight;
  }
  if (lane == 0) inverse[output] = inverse_of(scale);
}

extern "C" __global__ void __launch_bounds__(128, 4)
conv3d(const float* __restrict__ x, const half* __restrict__ arranged, const float* __restrict__ inverse,
       float* __restrict__ out, int outputs, int size) {
  extern __shared__ __align__(128) float shared[];
  float* results = shared;                      // [warp][16 output channels][column]
  half* ring = (half*)(shared + 4 * kResults);  // [4 rows]
  float* raw = (float*)(ring + 4 * kRow);       // [2 rows][5 channels][thread]
  float* tops = raw + 2 * kRaw;                 // [4 rows][warp]
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size - 2, area = size * size, z = blockIdx.x % width, image = blockIdx.x / width;
  int channel = blockIdx.y * 64 + warp * 16;

  // Of every row, a thread brings four or five channels of a place.
  int p = t % 64, group = t / 64;
  x += ((size_t)image * 3 * size + z) * area;
  auto fetch = [&](int r) {
    #pragma unroll 1
    for (int j = 0; j < 5; ++j) {
      int c = group * 5 + j;
      bool real = p < size && c < 9;
      const float* from = x + (c / 3 * size + c % 3) * area + r * size + p;
      __pipeline_memcpy_async(raw + r % 2 * kRaw + j * 128 + t, real ? from : x, 4, real ? 0 : 4);
    }
  };
  if (t < 16) tops[t] = 0.0f;
  fetch(0);
  __pipeline_commit();

  // Where the elements that a lane has of a sum lie: asked of the hardware, by loading a table.
  float* mine = results + warp * kResults;
  for (int i = lane; i < 256; i += 32) mine[i] = i / 16 * kPitch + i % 16 * 4;
  __syncwarp();
  Sums sums[4];
  wmma::load_matrix_sync(sums[0], mine, 16, wmma::mem_row_major);
  int to[sums[0].num_elements];
  for (int e = 0; e < sums[0].num_elements; ++e) to[e] = sums[0].x[e];
  __syncthreads();
  Weights weights[9];
  for (int k = 0; k < 9; ++k) wmma::load_matrix_sync(weights[k], arranged + (channel / 16 * 9 + k) * 256, 16);

  float unscale = inverse[channel + lane % 16], scale = 1.0f;
  int plane = width * width * width;
  float* target = out + ((size_t)image * outputs + channel) * plane + z * width * width + 2 * lane;
  for (int r = 0; r <= size; ++r) {
    if (r + 1 < size) fetch(r + 1);
    __pipeline_commit();
    if (r >= 3) {
      for (int i = 0; i < 4; ++i) wmma::fill_fragment(sums[i], 0.0f);
      #pragma unroll
      for (int dy = 0; dy < 3; ++dy) {
        const half* row = ring + (r + dy + 1) % 4 * kRow;
        __syncwarp();  // keeps later loads from taking registers now
        #pragma unroll
        for (int s = 0; s < 6; ++s) {
          Places places;
          wmma::load_matrix_sync(places, row + s * 16, kStrip);
          for (int dx = 0; dx < 3; ++dx) {
            if (s < dx || s - dx > 3) continue;
            wmma::mma_sync(sums[s - dx], weights[dy * 3 + dx], places, sums[s - dx]);
          }
        }
      }
      for (int e = 0; e < sums[0].num_elements; ++e) {
        *(float4*)(mine + to[e]) = make_float4(sums[0].x[e], sums[1].x[e], sums[2].x[e], sums[3].x[e]);
      }
      __syncwarp();
      float back = inverse_of(scale);
      float* at = target;
      #pragma unroll 4
      for (int c = 0; c < 16; ++c) {
        float factor = __shfl_sync(~0u, unscale, c);
        float2 v = *(float2*)(mine + c * kPitch + 2 * lane);
        v = make_float2(v.x * factor * back, v.y * factor * back);
        int room = channel + c < outputs ? width - 2 * lane : 0;
        if (width % 2 == 0) {
          if (room > 0) *(float2*)at = v;
        } else {
          if (room > 0) at[0] = v.x;
          if (room > 1) at[1] = v.y;
        }
        at += plane;
      }
      __syncwarp();
      target += width;
    }

    if (r == size) break;
    __pipeline_wait_prior(1);
    const float* own = raw + r % 2 * kRaw + t;
    half* to_place = ring + r % 4 * kRow + p / 4 * kStrip + p % 4 * 16 + group * 8;
    float top = 0.0f;
    for (int j = 0; j < 5; ++j) top = fmaxf(top, fabsf(own[j * 128]));
    top = largest(top);
    if (lane == 0) tops[r % 4 * 4 + warp] = top;
    for (;;) {
      uint4 packed = make_uint4(0, 0, 0, 0);
      ((half2*)&packed)[0] = __floats2half2_rn(own[0] * scale, own[128] * scale);
      ((half2*)&packed)[1] = __floats2half2_rn(own[256] * scale, own[384] * scale);
      ((half2*)&packed)[2] = __floats2half2_rn(own[512] * scale, 0.0f);
      *(uint4*)to_place = packed;
      if (p % 4 < 2 && p >= 4) *(uint4*)(to_place - kStrip + 4 * 16) = packed;  // a neighbour's fifth and sixth
      __syncthreads();
      float recent = largest(lane / 4 % 4 == (r + 1) % 4 ? 0.0f : tops[lane % 16]), wanted = scale_of(recent);
      if (recent == 0.0f || wanted == scale || (recent * scale > 16.0f && recent * scale < 60000.0f)) break;
      float factor = fminf(wanted * inverse_of(scale), 1e30f);  // rows that are so much smaller are zeros already
      for (int i = t; i < 4 * kRow; i += 128) ring[i] = __float2half(__half2float(ring[i]) * factor);
      scale = wanted;
      __syncthreads();
    }
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
conv3d = cp.RawKernel(source, "conv3d")
SHARED = 4 * (4 * 16 * 68 + 2 * 1664 + 2 * 5 * 128 + 16)
conv3d.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight):
    batch, _, size = x.shape[:3]
    outputs = weight.shape[0]
    width = size - 2
    groups = (outputs + 63) // 64
    arranged = cp.empty((groups * 64, 144), cp.float16)
    inverse = cp.empty((groups * 64,), cp.float32)
    out = cp.empty((batch, outputs, width, width, width), cp.float32)
    arrange((groups * 64,), (32,), (weight, arranged, inverse, outputs))
    conv3d((batch * width, groups), (128,), (x, arranged, inverse, out, outputs, size), shared_mem=SHARED)
    return out
