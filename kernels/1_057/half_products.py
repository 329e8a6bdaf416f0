"""Products of halves on tensor cores; the weights stay in registers while a block walks down the image.

A transposed convolution of stride 1 is a product of the weights (output channel by 9 taps x input channels) with
shifted x. TF32 and half round to the same eleven bits, but tensor cores multiply halves several times faster. What half
lacks is range: so the weights of each output channel are scaled by a power of two beforehand, and x by one that follows
the largest of the last three rows of the block. When that leaves a window of twelve binades, the rows in shared memory
are scaled anew. An element is thus rounded to eleven bits, or by 2^-29 of the largest nearby where that is more; sums
are float.

A warp keeps 16 output channels of all 576 weights in registers as fragments. A block takes 64 columns and goes down row
by row, with the last rows of x as halves in shared memory, channels fastest, and the next one on its way. The columns
of a fragment are four apart, so that a tap is a shift by whole columns, which keeps load_matrix_sync aligned, and a
loaded fragment serves three taps. Four sums of a lane are then neighbours in the output: as float4 they pass through
shared memory, and leave in runs of 256 bytes. Which element a lane holds is asked of the hardware, by loading a table.
Up to 64 input channels (fewer are padded with zeros), any number of output channels, 3 x 3 taps.

Techniques: tensor cores, scaled halves, implicit matrix product, register-resident weights, asynchronous copies
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Columns;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sums;

const int kStrip = 6 * 64 + 8;  // four columns of 64 channels and the next two; 8 against bank conflicts
const int kRow = 16 * kStrip;   // 64 columns
const int kPitch = 68;          // of an output channel's 64 columns: 4 modulo 8 against bank conflicts
const int kResults = 16 * kPitch, kRaw = 66 * 64;

// The power of two that brings `top` to [2^14, 2^15), and its inverse.
__device__ float scale_of(float top) { return __int_as_float(min(268 - (__float_as_int(top) >> 23), 253) << 23); }
__device__ float inverse_of(float scale) { return __int_as_float((254 << 23) - __float_as_int(scale)); }

__device__ float largest(float top) { return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(top))); }

// One output channel: weights as halves, [16 outputs][last tap first][16 inputs][output][input], zero where none is.
extern "C" __global__ void arrange(const float* w, half* arranged, float* inverse, int inputs, int outputs) {
  int output = blockIdx.x, lane = threadIdx.x;
  int count = output < outputs ? inputs * 9 : 0;
  float top = 0.0f;
  for (int i = lane; i < count; i += 32) top = fmaxf(top, fabsf(w[(i / 9 * outputs + output) * 9 + i % 9]));
  float scale = scale_of(largest(top));
  arranged += output / 16 * 36 * 256 + output % 16 * 16;
  for (int i = lane; i < 576; i += 32) {
    int input = i % 64, tap = i / 64;
    float weight = input * 9 < count ? w[(input * outputs + output) * 9 + 8 - tap] : 0.0f;
    arranged[(tap * 4 + input / 16) * 256 + input % 16] = __float2half(weight * scale);
  }
  if (lane == 0) inverse[output] = inverse_of(scale);
}

// Of a pair of column and group of 16 channels: columns meet no bank twice, as their groups are rotated.
__device__ int place(int column, int group) { return column * 64 + (group + column) % 4 * 16; }

extern "C" __global__ void __launch_bounds__(128, 2)
transposed(const float* __restrict__ x, const half* __restrict__ arranged, const float* __restrict__ inverse,
           float* __restrict__ out, int inputs, int outputs, int size, int tiles, int strip) {
  extern __shared__ __align__(128) float shared[];
  float* results = shared;                      // [warp][16 output channels][column]
  half* ring = (half*)(shared + 4 * kResults);  // [4 rows]
  float* raw = (float*)(ring + 4 * kRow);       // [2 rows]([channel][64 columns], [channel][two columns before them])
  float* tops = raw + 2 * kRaw;                 // [4 rows][warp]
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size + 2;
  int column = blockIdx.x % tiles * 64;
  int first = blockIdx.x / tiles * strip;
  int rows = min(strip, width - first) + 2;  // of x with two rows of zeros around it
  int channel = blockIdx.y * 64 + warp * 16;

  // Of every row, a thread brings 32 channels of a column, and an element of the two columns before.
  int image = size * size, plane = width * width;
  int p = t % 64, group = t / 64 * 8, q = p + 2, edge = t % 2;
  x += (size_t)blockIdx.z * inputs * image;
  auto fetch = [&](int r) {
    int y = first + r - 2, before = column - 2 + edge;
    bool inside = y >= 0 && y < size, here = inside && column + p < size;
    const float* from = x + y * size + column + p;
    float* to = raw + r % 2 * kRaw;
    #pragma unroll 4
    for (int i = 0; i < 32; ++i) {
      int c = i / 8 * 16 + group + i % 8;
      bool real = here && c < inputs;
      __pipeline_memcpy_async(to + c * 64 + p, real ? from + c * image : x, 4, real ? 0 : 4);
    }
    bool real = inside && before >= 0 && before < size && t / 2 < inputs;
    from = real ? x + t / 2 * image + y * size + before : x;
    __pipeline_memcpy_async(to + 64 * 64 + t, from, 4, real ? 0 : 4);
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
  Weights weights[36];
  for (int k = 0; k < 36; ++k) wmma::load_matrix_sync(weights[k], arranged + (channel / 16 * 36 + k) * 256, 16);

  float unscale = inverse[channel + lane % 16], scale = 1.0f;
  float* target = out + (blockIdx.z * (size_t)outputs + channel) * plane + first * width + column + 2 * lane;
  for (int r = 0; r <= rows; ++r) {
    if (r + 1 < rows) fetch(r + 1);
    __pipeline_commit();
    if (r >= 3) {
      for (int i = 0; i < 4; ++i) wmma::fill_fragment(sums[i], 0.0f);
      #pragma unroll
      for (int dy = 0; dy < 3; ++dy) {
        const half* row = ring + (r + dy + 1) % 4 * kRow;
        __syncwarp();  // keeps later loads from taking registers now
        #pragma unroll
        for (int i = 0; i < 24; ++i) {
          int s = i % 6, group = i / 6;
          Columns columns;
          wmma::load_matrix_sync(columns, row + place(s, group), kStrip);
          for (int dx = 0; dx < 3; ++dx) {
            if (s < dx || s - dx > 3) continue;
            wmma::mma_sync(sums[s - dx], weights[(dy * 3 + dx) * 4 + group], columns, sums[s - dx]);
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
        int room = channel + c < outputs ? width - column - 2 * lane : 0;
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

    if (r == rows) break;
    __pipeline_wait_prior(1);
    const float* own = raw + r % 2 * kRaw;
    half* row = ring + r % 4 * kRow;
    for (;;) {
      float last = own[64 * 64 + t], top = fabsf(last);
      for (int c = group; c < 64; c += 16) {
        uint4 packed;
        for (int i = 0; i < 4; ++i) {
          float even = own[(c + 2 * i) * 64 + p], odd = own[(c + 2 * i + 1) * 64 + p];
          top = fmaxf(top, fmaxf(fabsf(even), fabsf(odd)));
          ((half2*)&packed)[i] = __floats2half2_rn(even * scale, odd * scale);
        }
        half* at = row + q / 4 * kStrip + place(q % 4, c / 16) + c % 16;
        if (q < 64) *(uint4*)at = packed;
        if (q % 4 < 2 && q >= 4) *(uint4*)(at - kStrip + 4 * 64) = packed;  // a neighbour's fifth and sixth
      }
      row[place(edge, t / 32) + t / 2 % 16] = __float2half(last * scale);
      top = largest(top);
      if (lane == 0) tops[r % 4 * 4 + warp] = top;
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
transposed = cp.RawKernel(source, "transposed")
SHARED = 4 * (4 * 16 * 68 + 2 * 16 * 392 + 2 * 66 * 64 + 16)
transposed.max_dynamic_shared_size_bytes = SHARED


def forward(x, weight):
    batch, inputs, size, _ = x.shape
    outputs = weight.shape[1]
    width = size + 2
    groups = (outputs + 63) // 64
    tiles, strip = (width + 63) // 64, 64
    strips = (width + strip - 1) // strip
    arranged = cp.empty((groups * 64, 576), cp.float16)
    inverse = cp.empty((groups * 64,), cp.float32)
    out = cp.empty((batch, outputs, width, width), cp.float32)
    arrange((groups * 64,), (32,), (weight, arranged, inverse, inputs, outputs))
    args = (x, arranged, inverse, out, inputs, outputs, size, tiles, strip)
    transposed((tiles * strips, groups, batch), (128,), args, shared_mem=SHARED)
    return out
