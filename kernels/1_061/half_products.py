"""Products of halves on tensor cores, with all weights in shared memory and tiles of flattened planes.

A transposed convolution of stride 1 is a product of the weights (output channel by 27 taps x input channels) with
shifted x. TF32 and half round to the same eleven bits, but tensor cores multiply halves several times faster. What half
lacks is range: so the weights of each output channel are scaled by a power of two, and every image by one of its own.
An element is thus rounded to eleven bits, or by 2^-39 of the largest of the image where that is more; sums are float.

x is turned into halves beforehand, 16 channels of a place side by side. Its planes get two zeros before every row and
two rows of them around: then a plane is one run of numbers, in which a tap is a constant shift and the places of an
output plane are neighbours, too. A block per multiprocessor keeps the weights of 48 output channels in shared memory
and goes through tiles of 512 places. A step is 16 channels of a plane, and two are on their way meanwhile. A warp has
sums for 48 channels x 64 places; the columns of a fragment are four places apart, so that a loaded fragment serves
three taps and four sums of a lane are neighbours in the output, stored as float4. Which element a lane holds is asked
of the hardware, by loading a table. Planes of up to 64 x 64, up to 48 input channels, 3 x 3 x 3 taps.

Techniques: tensor cores, scaled halves, implicit matrix product, multistage pipeline, persistent blocks
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

const int kPlaces = 512, kStages = 3;
const int kStrip = 4 * 16 + 16;                   // four places of 16 channels; the rest against bank conflicts
const int kStage = (kPlaces + 136) / 4 * kStrip;  // 134 places more for the taps of two rows

// The power of two that brings `top` to [2^14, 2^15), and its inverse.
__device__ float scale_of(float top) { return __int_as_float(min(268 - (__float_as_int(top) >> 23), 253) << 23); }
__device__ float inverse_of(float scale) { return __int_as_float((254 << 23) - __float_as_int(scale)); }

__device__ float largest(float top) { return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(top))); }

// One output channel: weights as halves, [output][last tap first][input] and 8 more, zero where none is.
extern "C" __global__ void arrange(const float* w, half* arranged, float* inverse, int inputs, int outputs,
                                   int padded) {
  int output = blockIdx.x, lane = threadIdx.x;
  int count = output < outputs ? inputs * 27 : 0;
  float top = 0.0f;
  for (int i = lane; i < count; i += 32) top = fmaxf(top, fabsf(w[(i / 27 * outputs + output) * 27 + i % 27]));
  float scale = scale_of(largest(top));
  arranged += output * (27 * padded + 8);
  for (int i = lane; i < 27 * padded + 8; i += 32) {
    int input = i % padded, tap = i / padded;
    bool real = tap < 27 && input * 27 < count;
    arranged[i] = __float2half(real ? w[(input * outputs + output) * 27 + 26 - tap] * scale : 0.0f);
  }
  if (lane == 0) inverse[output] = inverse_of(scale);
}

extern "C" __global__ void image_tops(const float* x, int* tops, int count) {
  x += (size_t)blockIdx.y * count;
  float top = 0.0f;
  #pragma unroll 8
  for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) top = fmaxf(top, fabsf(x[i]));
  top = largest(top);
  if (threadIdx.x % 32 == 0) atomicMax(tops + blockIdx.y, __float_as_int(top));
}

// [image][plane][group of 16 channels][place of the padded plane][channel]
extern "C" __global__ void halve(const float* x, const int* tops, half* halves, int inputs, int size, int run) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= run) return;
  int width = size + 2, row = i / width - 2, column = i % width - 2, groups = gridDim.z;
  int image = blockIdx.y / size, z = blockIdx.y % size, first = blockIdx.z * 16;
  bool inside = row >= 0 && row < size && column >= 0;
  size_t volume = (size_t)size * size * size;
  x += ((size_t)image * inputs + first) * volume + ((size_t)z * size + row) * size + column;
  float scale = scale_of(__int_as_float(tops[image]));
  uint4 packed[2];
  #pragma unroll
  for (int c = 0; c < 16; c += 2) {
    float even = inside && first + c < inputs ? x[c * volume] * scale : 0.0f;
    float odd = inside && first + c + 1 < inputs ? x[(c + 1) * volume] * scale : 0.0f;
    ((half2*)packed)[c / 2] = __floats2half2_rn(even, odd);
  }
  uint4* target = (uint4*)(halves + (((size_t)blockIdx.y * groups + blockIdx.z) * run + i) * 16);
  target[0] = packed[0];
  target[1] = packed[1];
}

extern "C" __global__ void __launch_bounds__(256, 1)
transposed(const half* __restrict__ halves, const half* __restrict__ arranged, const float* __restrict__ inverse,
           const int* __restrict__ tops, float* __restrict__ out, int outputs, int size, int groups, int run,
           int tiles) {
  extern __shared__ __align__(128) half shared[];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size + 2, plane = width * width, parts = (plane + kPlaces - 1) / kPlaces;
  int pitch = 27 * 16 * groups + 8, steps = 3 * groups;
  half* weights = shared;  // [48 outputs][tap][input]
  half* stages = shared + 48 * pitch;
  int channel = blockIdx.y * 48;
  for (int i = t; i < 6 * pitch; i += 256) {
    __pipeline_memcpy_async(weights + 8 * i, arranged + channel * pitch + 8 * i, 16);
  }

  // A step of this block: 16 channels of one of the three planes that reach a tile.
  int count = (tiles - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x * steps;
  auto fetch = [&](int step) {
    int tile = blockIdx.x + step / steps * gridDim.x, volume = tile / parts;
    int z = volume % width + step % steps / groups - 2, image = volume / width;
    bool real = z >= 0 && z < size;
    int from = ((image * size + z) * groups + step % groups) * run + tile % parts * kPlaces;
    const half* source = real ? halves + (size_t)from * 16 : halves;
    half* stage = stages + step % kStages * kStage;
    for (int i = t; i < 2 * (kPlaces + 2 * width + 2); i += 256) {
      int place = i / 2;
      half* to = stage + place / 4 * kStrip + place % 4 * 16 + i % 2 * 8;
      __pipeline_memcpy_async(to, source + i * 8, 16, real ? 0 : 16);
    }
  };
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < count) fetch(step);
    __pipeline_commit();
  }

  // Where the elements that a lane has of a sum lie: asked of the hardware, by loading a table.
  float* table = (float*)(stages + (kStages - 1) * kStage);
  for (int i = t; i < 256; i += 256) table[i] = i;
  __syncthreads();
  Sums sums[3][4];
  wmma::load_matrix_sync(sums[0][0], table, 16, wmma::mem_row_major);
  int element[sums[0][0].num_elements];
  for (int e = 0; e < sums[0][0].num_elements; ++e) element[e] = sums[0][0].x[e];
  for (int m = 0; m < 12; ++m) wmma::fill_fragment(sums[m / 4][m % 4], 0.0f);

  for (int step = 0; step < count; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    if (step + kStages - 1 < count) fetch(step + kStages - 1);
    __pipeline_commit();
    const half* stage = stages + step % kStages * kStage;
    const half* left = weights + (step % steps / groups * 9 * groups + step % groups) * 16;
    #pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
      Places places[6];
      for (int s = 0; s < 6; ++s) {
        int at = warp * 64 + dy * width + s;
        wmma::load_matrix_sync(places[s], stage + at / 4 * kStrip + at % 4 * 16, kStrip);
      }
      for (int dx = 0; dx < 3; ++dx) {
        for (int m = 0; m < 3; ++m) {
          Weights weight;
          wmma::load_matrix_sync(weight, left + m * 16 * pitch + (dy * 3 + dx) * groups * 16, pitch);
          for (int s = 0; s < 4; ++s) wmma::mma_sync(sums[m][s], weight, places[s + dx], sums[m][s]);
        }
      }
    }
    if (step % steps != steps - 1) continue;

    int tile = blockIdx.x + step / steps * gridDim.x, volume = tile / parts, image = volume / width;
    float back = inverse_of(scale_of(__int_as_float(tops[image])));
    float* target = out + ((size_t)image * outputs * width + volume % width) * plane;
    int first = tile % parts * kPlaces + warp * 64;
    #pragma unroll
    for (int m = 0; m < 3; ++m) {
      for (int e = 0; e < sums[0][0].num_elements; ++e) {
        int c = channel + m * 16 + element[e] / 16, at = first + element[e] % 16 * 4;
        float factor = inverse[c];
        float4 v = make_float4(sums[m][0].x[e] * factor * back, sums[m][1].x[e] * factor * back,
                               sums[m][2].x[e] * factor * back, sums[m][3].x[e] * factor * back);
        float* to = target + (size_t)c * width * plane + at;
        int room = c < outputs ? plane - at : 0;
        if (plane % 4 == 0) {
          if (room > 0) *(float4*)to = v;
        } else {
          if (room > 0) to[0] = v.x;
          if (room > 1) to[1] = v.y;
          if (room > 2) to[2] = v.z;
          if (room > 3) to[3] = v.w;
        }
      }
      for (int s = 0; s < 4; ++s) wmma::fill_fragment(sums[m][s], 0.0f);
    }
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
image_tops = cp.RawKernel(source, "image_tops")
halve = cp.RawKernel(source, "halve")
transposed = cp.RawKernel(source, "transposed")
transposed.max_dynamic_shared_size_bytes = 2 * (48 * (27 * 48 + 8) + 3 * 162 * 80)


def forward(x, weight):
    batch, inputs, size = x.shape[:3]
    outputs = weight.shape[1]
    width, groups = size + 2, (inputs + 15) // 16
    parts, blocks_y = (width * width + 511) // 512, (outputs + 47) // 48
    run = parts * 512 + 2 * width + 2
    tiles = batch * width * parts
    arranged = cp.empty((blocks_y * 48, 27 * 16 * groups + 8), cp.float16)
    inverse = cp.empty((blocks_y * 48,), cp.float32)
    tops = cp.zeros((batch,), cp.int32)
    halves = cp.empty((batch * size * groups * run, 16), cp.float16)
    out = cp.empty((batch, outputs, width, width, width), cp.float32)
    arrange((blocks_y * 48,), (32,), (weight, arranged, inverse, inputs, outputs, 16 * groups))
    count = inputs * size * size * size
    image_tops((min(256, (count + 255) // 256), batch), (256,), (x, tops, count))
    halve(((run + 255) // 256, batch * size, groups), (256,), (x, tops, halves, inputs, size, run))
    args = (halves, arranged, inverse, tops, out, outputs, size, groups, run, tiles)
    shared = 2 * (48 * (27 * 16 * groups + 8) + 3 * 162 * 80)
    transposed((min(tiles, 132), blocks_y), (256,), args, shared_mem=shared)
    return out
