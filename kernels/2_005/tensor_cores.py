"""Transposed convolution, both biases and tanh in one TF32 tensor-core kernel, even and odd outputs apart.

The reference writes 2.2 gigabytes of sums and passes over them again for the difference and for tanh; here all
happens before the only store. With stride 2 and 4 x 4 taps, an output row meets two rows of x, and so do columns:
each of the four classes (even or odd row, even or odd column) is a convolution of x with 2 x 2 taps, no
multiplication by inserted zeros. It is a product of weights and shifted pixels without im2col: a block keeps a tile
of x (8 x 32 pixels and the halo, all channels) in shared memory, rounded to TF32 once, and a tap is an offset into
it. It serves all four classes: the block runs over even and odd rows and over groups of 32 output channels, and a
warp has both even and odd columns of 64 pixels at once, so that its output rows are whole. The pixels under a tap of
both are loaded once for both. Nothing is synchronised inside the loop: the weights, arranged once in the order in
which lanes hold fragments, come from L1 and L2 as one coalesced float4 per lane and fragment, those of the next step
under way while this one's are multiplied. Pixel fragments are filled by hand, because shifts by a tap break the
alignment that load_matrix_sync wants; which element a lane holds is asked of the hardware, by loading a table of
indices. Channels lie 8 modulo 16 words apart, so that a fragment meets no bank twice. The last row and column, which
would need a tile of their own for one line, come from a small kernel in float32. Up to 64 input channels; up to
sixteen stand three times in the product, as high and low parts of x and weights, so that it is as exact as float32.

Techniques: tensor cores, implicit matrix product, fusion, parity classes, weights in fragment order
"""
import cupy as cp

source = r'''
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Pixels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kSpan = 34, kPixels = 10 * kSpan, kPitch = 344;  // 8 modulo 16 words from channel to channel
const int kStaged = 80;  // of a channel's 32 even columns, which begin 48 before its 32 odd ones

__device__ float low(float v) { return wmma::__float_to_tf32(v - wmma::__float_to_tf32(v)); }

// [group of 32 outputs][even rows, odd rows][upper row of x, lower][group of 8 inputs][8 fragments][lane]: the four
// elements that a lane holds. Fragments are even columns left, even columns here, odd columns here, odd columns right,
// 16 outputs and 16 more of each.
extern "C" __global__ void arrange(const float* w, float4* arranged, int inputs, int outputs, int depth, int channels) {
  __shared__ __align__(32) float table[128];
  for (int i = threadIdx.x; i < 128; i += 32) table[i] = i;
  __syncwarp();
  Weights index;
  wmma::load_matrix_sync(index, table, 8);
  int odd = blockIdx.x / (2 * depth) % 2, lower = blockIdx.x / depth % 2;
  int a = lower ? 1 - odd : 3 - odd;  // even rows: taps 3 and 1; odd rows: 2 and 0
  int b = blockIdx.y / 2 == 0 ? 3 : blockIdx.y / 2 == 1 ? 1 : blockIdx.y / 2 == 2 ? 2 : 0;
  float v[4];
  for (int e = 0; e < 4; ++e) {
    int i = index.x[e], o = blockIdx.x / (4 * depth) * 32 + blockIdx.y % 2 * 16 + i / 8;
    int c = blockIdx.x % depth * 8 + i % 8;
    bool real = o < outputs && c % channels < inputs;
    float exact = real ? w[((c % channels * outputs + o) * 4 + a) * 4 + b] : 0.0f;
    v[e] = c / channels == 2 ? low(exact) : wmma::__float_to_tf32(exact);
  }
  arranged[(blockIdx.x * 8 + blockIdx.y) * 32 + threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ void take(Weights& weight, float4& next, const float4* from) {
  weight.x[0] = next.x;
  weight.x[1] = next.y;
  weight.x[2] = next.z;
  weight.x[3] = next.w;
  next = *from;
}

// Within 1e-7 of tanh, and of its relative size near zero.
__device__ float fast_tanh(float v) {
  float s = v * v, near = v + v * s * (s * 0.13333333f - 0.33333333f);
  return s < 0.01f ? near : 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * v));
}

// kChannels channels, padded, in kInputs places: high parts, low parts, high parts again.
template <int kInputs, int kChannels>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const float* __restrict__ bias, const float4* __restrict__ weights,
     const float* __restrict__ conv_bias, float* __restrict__ out, int inputs, int outputs, int height, int width,
     int tiles) {
  extern __shared__ float tile[];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int column = blockIdx.x % tiles * 32, row = blockIdx.x / tiles * 8;

  tile[t] = t;
  __syncthreads();
  Pixels index;
  wmma::load_matrix_sync(index, tile, 16);
  const float* from[4];
  for (int e = 0; e < 4; ++e) {
    int i = index.x[e];
    from[e] = tile + i / 16 * kPitch + i % 16 + warp * 2 * kSpan;
  }
  __syncthreads();
  for (int p = t; p < kPixels; p += 128) {
    int y = row + p / kSpan - 1, z = column + p % kSpan - 1;
    bool inside = y >= 0 && y < height && z >= 0 && z < width;
    const float* pixel = x + ((size_t)blockIdx.y * inputs * height + y) * width + z;
    #pragma unroll 16
    for (int c = 0; c < kInputs; ++c) {
      float v = inside && c % kChannels < inputs ? pixel[c % kChannels * height * width] : 0.0f;
      tile[c * kPitch + p] = c / kChannels == 1 ? low(v) : wmma::__float_to_tf32(v);
    }
  }
  const float4* mine = weights + lane;
  float4 next[8];
  #pragma unroll
  for (int m = 0; m < 8; ++m) next[m] = mine[m * 32];
  __syncthreads();

  float* staged = tile + kInputs * kPitch + warp * 16 * kStaged;
  int high = 2 * height + 1, wide = 2 * width + 1;
  for (int pass = 0; pass < (outputs + 31) / 32 * 2; ++pass) {
    Sums sums[4][4];  // even columns, odd columns; two groups of 16 outputs each
    #pragma unroll
    for (int m = 0; m < 4; ++m) {
      #pragma unroll
      for (int n = 0; n < 4; ++n) wmma::fill_fragment(sums[m][n], 0.0f);
    }
    for (int lower = 0; lower < 2; ++lower) {
      int shift = (pass % 2 + lower) * kSpan;
      #pragma unroll
      for (int k = 0; k < kInputs / 8; ++k) {
        mine += 8 * 32;  // one step more is allocated than there are
        #pragma unroll
        for (int tap = 0; tap < 3; ++tap) {
          Pixels pixel[4];
          #pragma unroll
          for (int n = 0; n < 4; ++n) {
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
              pixel[n].x[e] = from[e][k * 8 * kPitch + n / 2 * kSpan + n % 2 * 16 + shift + tap];
            }
          }
          #pragma unroll
          for (int m = tap < 2 ? 0 : 2; m < (tap > 0 ? 4 : 2); ++m) {
            Weights weight;
            take(weight, next[m + 2 * tap], mine + (m + 2 * tap) * 32);
            #pragma unroll
            for (int n = 0; n < 4; ++n) wmma::mma_sync(sums[m][n], weight, pixel[n], sums[m][n]);
          }
        }
      }
    }
    #pragma unroll
    for (int m = 0; m < 2; ++m) {
      int first = pass / 2 * 32 + m * 16;
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          wmma::store_matrix_sync(staged + n / 2 * 48 + n % 2 * 16, sums[n / 2 * 2 + m][r * 2 + n % 2], kStaged,
                                  wmma::mem_row_major);
        }
        __syncwarp();
        int y = row + warp * 2 + r, z = 2 * column + lane;
        float* target = out + (((size_t)blockIdx.y * outputs + first) * high + 2 * y + pass % 2) * wide + z;
        int last = y < height ? min(16, outputs - first) : 0;
        #pragma unroll 4
        for (int c = 0; c < last; ++c) {
          float term = conv_bias[first + c] - bias[first + c];
          const float* sum = staged + c * kStaged + lane % 2 * 48 + lane / 2;
          if (z < 2 * width) target[0] = fast_tanh(sum[0] + term);
          if (z + 32 < 2 * width) target[32] = fast_tanh(sum[16] + term);
          target += (size_t)high * wide;
        }
        __syncwarp();
      }
    }
  }
}

// The last column (blockIdx.y = 0) and the last row (1), the corner with the row: two neighbouring outputs a thread.
extern "C" __global__ void __launch_bounds__(128)
edges(const float* __restrict__ x, const float* __restrict__ bias, const float* __restrict__ w,
      const float* __restrict__ conv_bias, float* __restrict__ out, int inputs, int outputs, int height, int width) {
  int image = blockIdx.z / ((outputs + 7) / 8), first = blockIdx.z % ((outputs + 7) / 8) * 8;
  bool along = blockIdx.y == 1;
  int i = blockIdx.x * 128 + threadIdx.x, length = along ? width : height;
  if (i > length || (i == length && !along)) return;
  int plane = height * width, pitch = along ? 1 : width;
  x += (size_t)image * inputs * plane + (along ? (height - 1) * width : width - 1);
  w += along ? 12 : 3;
  float even[8] = {}, odd[8] = {};
  for (int c = 0; c < inputs; ++c) {
    float before = i > 0 ? x[c * plane + (i - 1) * pitch] : 0.0f;
    float here = i < length ? x[c * plane + i * pitch] : 0.0f;
    float after = i + 1 < length ? x[c * plane + (i + 1) * pitch] : 0.0f;
    for (int o = 0; o < 8; ++o) {
      const float* taps = w + (c * outputs + min(first + o, outputs - 1)) * 16;
      int step = along ? 1 : 4;
      even[o] += here * taps[step] + before * taps[3 * step];
      odd[o] += after * taps[0] + here * taps[2 * step];
    }
  }
  int high = 2 * height + 1, wide = 2 * width + 1;
  float* target = out + ((size_t)image * outputs + first) * high * wide;
  target += along ? 2 * height * wide + 2 * i : 2 * i * wide + 2 * width;
  for (int o = 0; o < 8 && first + o < outputs; ++o) {
    float term = conv_bias[first + o] - bias[first + o];
    target[0] = fast_tanh(even[o] + term);
    if (i < length) target[along ? 1 : wide] = fast_tanh(odd[o] + term);
    target += (size_t)high * wide;
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
edges = cp.RawKernel(source, "edges")
module = cp.RawModule(code=source, name_expressions=("conv<64, 64>", "conv<32, 32>", "conv<48, 16>"))
conv_64 = module.get_function("conv<64, 64>")
conv_32 = module.get_function("conv<32, 32>")
conv_16 = module.get_function("conv<48, 16>")


def forward(x, bias, weight, conv_bias):
    batch, inputs, height, width = x.shape
    outputs = weight.shape[1]
    if inputs > 32:
        conv, depth, channels = conv_64, 8, 64
    elif inputs > 16:
        conv, depth, channels = conv_32, 4, 32
    else:
        conv, depth, channels = conv_16, 6, 16
    steps = (outputs + 31) // 32 * 4 * depth
    shared = (depth * 8 * 344 + 4 * 16 * 80) * 4
    weights = cp.empty((steps + 1, 8, 32, 4), cp.float32)
    out = cp.empty((batch, outputs, 2 * height + 1, 2 * width + 1), cp.float32)
    arrange((steps, 8), (32,), (weight, weights, inputs, outputs, depth, channels))
    tiles = (width + 31) // 32
    conv.max_dynamic_shared_size_bytes = shared
    args = (x, bias, weights, conv_bias, out, inputs, outputs, height, width, tiles)
    conv((tiles * ((height + 7) // 8), batch), (128,), args, shared_mem=shared)
    args = (x, bias, weight, conv_bias, out, inputs, outputs, height, width)
    edges(((max(height, width) + 128) // 128, 2, batch * ((outputs + 7) // 8)), (128,), args)
    return out
