"""TF32 tensor cores; the weights stay in registers while a block walks down the image.

The convolution is a product of the weights (output channel by 9 taps x input channels) with the shifted pixels. A warp
keeps 32 output channels of all 144 weights in registers as fragments, so a pixel is all that is ever loaded: a block
of four warps takes 16 columns and goes down row by row, one row of x (18 columns, all channels) at a time in shared
memory. A fragment of pixels serves all three rows of taps at once, because the sums of three output rows are in
flight: row y of x is the last row of taps for output row y - 2, the middle one for y - 1, the first for y. So a loaded
fragment feeds six products, x is read about once, and the next row is on its way while this one is multiplied.
Fragments of pixels are filled by hand, because the shifts by a tap break the alignment that load_matrix_sync wants;
which element a lane holds is asked of the hardware once, by loading a table of indices. Sums leave through shared
memory, so that output rows of any width are written in runs. Up to 16 input channels (fewer are padded with zeros),
any number of output channels, 3 x 3 taps.

Techniques: tensor cores, implicit matrix product, register-resident weights, rolling accumulators, double buffering
"""
import cupy as cp

source = r'''
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Pixels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kGroups = 2, kSteps = 9 * kGroups;  // 8 input channels of one tap each
const int kPitch = 24;     // of a channel's 18 pixels: 8 modulo 16, so that a fragment meets no bank twice
const int kOutPitch = 20;  // of an output channel's 16 pixels

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
        real ? wmma::__float_to_tf32(w[(output * inputs + input) * 9 + tap]) : 0.0f;
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
conv2d(const float* __restrict__ x, const float* __restrict__ arranged, float* __restrict__ out, int inputs,
       int outputs, int size, int tiles, int strip) {
  __shared__ __align__(32) float pixels[2][16 * kPitch];
  __shared__ __align__(32) float results[4][32 * kOutPitch];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int width = size - 2;
  int column = blockIdx.x % tiles * 16;
  int first = blockIdx.x / tiles * strip;
  int rows = min(strip, width - first) + 2;  // of x
  int channel = blockIdx.y * 128 + warp * 32;

  // Where this lane's elements of a fragment lie. Columns of a fragment are dealt so that results meet no bank twice.
  float* table = results[0];
  for (int i = t; i < 256; i += 128) table[i] = i;
  __syncthreads();
  Pixels pixel;
  Sums sums[3][2];  // of output rows y, y - 1, y - 2
  wmma::load_matrix_sync(pixel, table, 16);
  wmma::load_matrix_sync(sums[0][0], table, 16, wmma::mem_row_major);
  int from[pixel.num_elements], to[sums[0][0].num_elements];
  for (int e = 0; e < pixel.num_elements; ++e) {
    int i = pixel.x[e], n = i % 16;
    from[e] = i / 16 * kPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  for (int e = 0; e < sums[0][0].num_elements; ++e) {
    int i = sums[0][0].x[e], n = i % 16;
    to[e] = i / 16 * kOutPitch + n / 8 * 8 + n % 2 * 4 + n % 8 / 2;
  }
  Weights weights[2][kSteps];
  #pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    for (int m = 0; m < 2; ++m) {
      take(weights[m][s], arranged + ((channel / 16 + m) * kSteps + s) * 128);
    }
  }
  for (int k = 0; k < 3; ++k) {
    for (int m = 0; m < 2; ++m) wmma::fill_fragment(sums[k][m], 0.0f);
  }

  // Three pixels of every row are this thread's to load.
  const float* row = x + ((size_t)blockIdx.z * inputs * size + first) * size + column;
  bool wanted[3];
  int offset[3];
  float next[3];
  for (int j = 0; j < 3; ++j) {
    int c = (t + 128 * j) / kPitch, p = (t + 128 * j) % kPitch;
    wanted[j] = p < 18 && column + p < size && c < inputs;
    offset[j] = c * size * size + p;
    pixels[0][t + 128 * j] = wanted[j] ? wmma::__float_to_tf32(row[offset[j]]) : 0.0f;
  }
  __syncthreads();
  size_t plane = (size_t)width * width;
  int half = lane / 16 * 4, place = lane % 16;
  float* target = out + (blockIdx.z * (size_t)outputs + channel + half) * plane + (size_t)first * width;
  target += column + place;

  for (int y = 0; y < rows; ++y) {
    row += size;
    for (int j = 0; j < 3; ++j) next[j] = y + 1 < rows && wanted[j] ? row[offset[j]] : 0.0f;
    const float* here = pixels[y % 2];
    #pragma unroll
    for (int s = 0; s < 6; ++s) {
      for (int e = 0; e < pixel.num_elements; ++e) pixel.x[e] = here[from[e] + s % 2 * 8 * kPitch + s / 2];
      for (int k = 0; k < 3; ++k) {
        for (int m = 0; m < 2; ++m) wmma::mma_sync(sums[k][m], weights[m][k * 6 + s], pixel, sums[k][m]);
      }
    }
    if (y >= 2) {
      float* mine = results[warp];
      for (int m = 0; m < 2; ++m) {
        for (int e = 0; e < sums[2][m].num_elements; ++e) mine[m * 16 * kOutPitch + to[e]] = sums[2][m].x[e];
      }
      __syncwarp();
      #pragma unroll 4
      for (int i = 0; i < 16; ++i) {
        int c = i / 4 * 8 + i % 4;
        float value = mine[(c + half) * kOutPitch + place];
        if (column + place < width && channel + half + c < outputs) target[c * plane] = value;
      }
      __syncwarp();
      target += width;
    }
    for (int m = 0; m < 2; ++m) {
      sums[2][m] = sums[1][m];
      sums[1][m] = sums[0][m];
      wmma::fill_fragment(sums[0][m], 0.0f);
    }
    for (int j = 0; j < 3; ++j) pixels[(y + 1) % 2][t + 128 * j] = wmma::__float_to_tf32(next[j]);
    __syncthreads();
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
conv2d = cp.RawKernel(source, "conv2d")


def forward(x, weight):
    batch, inputs, size, _ = x.shape
    outputs = weight.shape[0]
    width = size - 2
    groups = (outputs + 127) // 128
    tiles = (width + 15) // 16
    strip = 93
    strips = (width + strip - 1) // strip
    arranged = cp.empty((8 * groups * 18 * 128,), cp.float32)
    out = cp.empty((batch, outputs, width, width), cp.float32)
    arrange((8 * groups * 18,), (32,), (weight, arranged, inputs, outputs))
    conv2d((tiles * strips, groups, batch), (128,), (x, arranged, out, inputs, outputs, size, tiles, strip))
    return out
