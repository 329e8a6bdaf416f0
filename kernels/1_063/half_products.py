"""Products of halves on tensor cores; the weights stay in registers while a block walks along rows of the image.

The convolution is a product of the weights (output channel by 9 taps x input channels) with the shifted pixels. TF32
and half round to the same eleven bits, but tensor cores multiply halves several times faster. What half lacks is range:
so the weights of each output channel are scaled by a power of two beforehand, and 3 x 66 pixels of x by one of their
own. It is kept from tile to tile, until the largest element leaves a window of twelve binades, which is seen when it
has been rounded, and then done again. An element is thus rounded to eleven bits, or by 2^-29 of the largest nearby
where that is more; sums are float.

A warp keeps 16 output channels of all 144 weights in registers as fragments. A block takes whole rows of the output, 64
pixels at a time, so that what it writes is contiguous, and blocks that run together take neighbouring rows, so that the
three rows of x come from the L2 cache. They are in shared memory as halves, channels fastest, the next ones on their
way. The columns of a fragment are four pixels apart, so that a tap is a shift by whole pixels, which keeps
load_matrix_sync aligned, and a loaded fragment serves three taps. Four sums of a lane are then neighbours in the
output: as float4 they pass through shared memory, and leave in runs of 256 bytes. Which element a lane holds is asked
of the hardware, by loading a table. Up to 16 input channels (fewer are padded with zeros), any number of output
channels, 3 x 3 taps.

Techniques: tensor cores, scaled halves, implicit matrix product, register-resident weights, asynchronous copies
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Pixels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sums;

const int kGroups = 3, kInputs = 48, kSteps = 9;  // 16 channels of each of three rows
const int kStrip = 6 * kInputs + 8;  // four pixels and the next two; 8 against bank conflicts
const int kTile = 16 * kStrip, kRaw = 66 * kInputs;
const int kPitch = 68;  // of an output channel's 64 pixels: 4 modulo 8 against bank conflicts

// The power of two that brings `top` to [2^14, 2^15), and its inverse.
__device__ float scale_of(float top) { return __int_as_float(min(268 - (__float_as_int(top) >> 23), 253) << 23); }
__device__ float inverse_of(float scale) { return __int_as_float((254 << 23) - __float_as_int(scale)); }

__device__ float largest(float top) { return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(top))); }

// Where the channels of a pixel and row begin.
__device__ int place(int pixel, int row) { return pixel * kInputs + row * 16; }

// One output channel: weights as halves, [16 outputs][tap][output][16 inputs], zero where none is.
extern "C" __global__ void arrange(const float* w, half* arranged, float* inverse, int inputs, int outputs) {
  int output = blockIdx.x, lane = threadIdx.x;
  int count = output < outputs ? inputs * 9 : 0;
  w += output * inputs * 9;
  float top = 0.0f;
  for (int i = lane; i < count; i += 32) top = fmaxf(top, fabsf(w[i]));
  float scale = scale_of(largest(top));
  for (int i = lane; i < 144; i += 32) {
    int tap = i / 16, at = i % 16 * 9 + tap;
    half weight = __float2half(at < count ? w[at] * scale : 0.0f);
    arranged[(output / 16 * 9 + tap) * 256 + output % 16 * 16 + i % 16] = weight;
  }
  if (lane == 0) inverse[output] = inverse_of(scale);
}

extern "C" __global__ void __launch_bounds__(256, 2)
conv2d(const float* __restrict__ x, const half* __restrict__ arranged, const float* __restrict__ inverse,
       float* __restrict__ out, int inputs, int outputs, int size, int tiles, int total) {
  extern __shared__ __align__(128) float shared[];
  float* results = shared;                           // [warp][16 output channels][pixel]
  half* halves = (half*)(shared + 8 * 16 * kPitch);  // [2 tiles]
  float* raw = (float*)(halves + 2 * kTile);         // [2 tiles][row, channel][64 pixels], then [2 beyond]
  float* tops = raw + 2 * kRaw;                      // [2 tiles][warp]
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size - 2, image = size * size, plane = width * width;
  int count = (total - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x * tiles;
  int channel = blockIdx.y * 128 + warp * 16;

  // Of every tile, a thread brings 12 channels of a pixel, and some an element of the two pixels beyond.
  int p = t % 64, group = t / 64 * 4, edge = t % 2;
  auto fetch = [&](int r) {
    int line = blockIdx.x + r / tiles * gridDim.x, start = r % tiles * 64;
    const float* corner = x + ((size_t)(line / width) * inputs * size + line % width) * size + start;
    float* to = raw + r % 2 * kRaw;
    #pragma unroll 4
    for (int i = 0; i < 12; ++i) {
      int c = group + i % 4, dy = i / 4;
      bool real = start + p < size && c < inputs;
      const float* from = real ? corner + c * image + dy * size + p : x;
      __pipeline_memcpy_async(to + (dy * 16 + c) * 64 + p, from, 4, real ? 0 : 4);
    }
    bool real = start + 64 + edge < size && t / 2 % 16 < inputs;
    const float* from = real ? corner + t / 2 % 16 * image + t / 32 * size + 64 + edge : x;
    if (t < 2 * kInputs) __pipeline_memcpy_async(to + 64 * kInputs + t, from, 4, real ? 0 : 4);
  };
  fetch(0);
  __pipeline_commit();

  // Where the elements that a lane has of a sum lie: asked of the hardware, by loading a table.
  float* mine = results + warp * 16 * kPitch;
  for (int i = lane; i < 256; i += 32) mine[i] = i / 16 * kPitch + i % 16 * 4;
  __syncwarp();
  Sums sums[4];
  wmma::load_matrix_sync(sums[0], mine, 16, wmma::mem_row_major);
  int to[sums[0].num_elements];
  for (int e = 0; e < sums[0].num_elements; ++e) to[e] = sums[0].x[e];
  __syncwarp();
  Weights weights[kSteps];
  for (int k = 0; k < kSteps; ++k) wmma::load_matrix_sync(weights[k], arranged + (channel / 16 * kSteps + k) * 256, 16);

  float unscale = inverse[channel + lane % 16], scale = 1.0f;
  for (int r = 0; r <= count; ++r) {
    if (r + 1 < count) fetch(r + 1);
    __pipeline_commit();
    if (r > 0) {
      const half* tile = halves + (r - 1) % 2 * kTile;
      for (int i = 0; i < 4; ++i) wmma::fill_fragment(sums[i], 0.0f);
      #pragma unroll
      for (int i = 0; i < 6 * kGroups; ++i) {
        int s = i % 6, group = i / 6;
        Pixels pixels;
        wmma::load_matrix_sync(pixels, tile + place(s, group), kStrip);
        for (int tap = 0; tap < 3; ++tap) {
          if (s < tap || s - tap > 3) continue;
          wmma::mma_sync(sums[s - tap], weights[group * 3 + tap], pixels, sums[s - tap]);
        }
      }
      for (int e = 0; e < sums[0].num_elements; ++e) {
        *(float4*)(mine + to[e]) = make_float4(sums[0].x[e], sums[1].x[e], sums[2].x[e], sums[3].x[e]);
      }
      __syncwarp();
      int position = (r - 1) % tiles * 64 + 2 * lane, line = blockIdx.x + (r - 1) / tiles * gridDim.x;
      float* target = out + ((size_t)(line / width) * outputs + channel) * plane + line % width * width + position;
      float back = inverse_of(scale);
      #pragma unroll 4
      for (int c = 0; c < 16; ++c) {
        float factor = __shfl_sync(~0u, unscale, c);
        float2 v = *(float2*)(mine + c * kPitch + 2 * lane);
        v = make_float2(v.x * factor * back, v.y * factor * back);
        int room = channel + c < outputs ? width - position : 0;
        if (width % 2 == 0) {
          if (room > 0) *(float2*)target = v;
        } else {
          if (room > 0) target[0] = v.x;
          if (room > 1) target[1] = v.y;
        }
        target += plane;
      }
      __syncwarp();
    }

    if (r == count) break;
    __pipeline_wait_prior(1);
    const float* own = raw + r % 2 * kRaw;
    half* tile = halves + r % 2 * kTile;
    for (;;) {
      float last = t < 2 * kInputs ? own[64 * kInputs + t] : 0.0f, top = fabsf(last);
      for (int dy = 0; dy < 3; ++dy) {
        uint2 packed;
        for (int i = 0; i < 2; ++i) {
          int c = dy * 16 + group + 2 * i;
          float even = own[c * 64 + p], odd = own[(c + 1) * 64 + p];
          top = fmaxf(top, fmaxf(fabsf(even), fabsf(odd)));
          ((half2*)&packed)[i] = __floats2half2_rn(even * scale, odd * scale);
        }
        half* at = tile + p / 4 * kStrip + place(p % 4, dy) + group;
        *(uint2*)at = packed;
        if (p % 4 < 2 && p >= 4) *(uint2*)(at - kStrip + 4 * kInputs) = packed;  // a neighbour's fifth and sixth
      }
      if (t < 2 * kInputs) tile[15 * kStrip + place(4 + edge, t / 32) + t / 2 % 16] = __float2half(last * scale);
      top = largest(top);
      if (lane == 0) tops[r % 2 * 8 + warp] = top;
      __syncthreads();
      top = largest(tops[r % 2 * 8 + lane % 8]);
      if (top == 0.0f || scale_of(top) == scale || (top * scale > 16.0f && top * scale < 60000.0f)) break;
      scale = scale_of(top);
    }
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
conv2d = cp.RawKernel(source, "conv2d")
SHARED = 4 * (8 * 16 * 68 + 16 * (6 * 48 + 8) + 2 * 66 * 48 + 16)
conv2d.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight):
    batch, inputs, size, _ = x.shape
    outputs = weight.shape[0]
    width = size - 2
    groups, tiles, total = (outputs + 127) // 128, (width + 63) // 64, batch * width
    arranged = cp.empty((groups * 128, 144), cp.float16)
    inverse = cp.empty((groups * 128,), cp.float32)
    out = cp.empty((batch, outputs, width, width), cp.float32)
    arrange((groups * 128,), (32,), (weight, arranged, inverse, inputs, outputs))
    args = (x, arranged, inverse, out, inputs, outputs, size, tiles, total)
    conv2d((min(total, 264), groups), (256,), args, shared_mem=SHARED)
    return out
