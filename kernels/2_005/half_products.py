"""Transposed convolution, both biases and tanh in one tensor-core kernel, even and odd outputs apart, operands in half.

The reference writes 2.2 gigabytes of sums and passes over them again for the difference and for tanh; here all
happens before the only store. With stride 2 and 4 x 4 taps, an output row meets two rows of x, and so do columns:
each of the four classes (even or odd row, even or odd column) is a convolution of x with 2 x 2 taps, no
multiplication by inserted zeros.

TF32, which the reference uses, and half both keep eleven bits, but tensor cores multiply halves several times faster.
The range is what half lacks, so powers of two, which change no bit, bring every output channel's weights and every
tile of x to a largest magnitude in [2^14, 2^15); the inverse powers are applied to the sums. Elements 2^-28 of the
largest in their tile and smaller lose bits that TF32 would keep.

A class is a product of shifted pixels and weights without im2col: a block loads 10 x 34 pixels, all channels, into
registers, finds the largest there, rounds, and keeps them as [pixel][channel] in shared memory, where a tap is an
offset of whole pixels. They serve all four classes: the block runs over even and odd rows and over groups of 32 output
channels, and a warp has both even and odd columns of 64 pixels at once, so that its output rows are whole and the
pixels under a tap of both are loaded once for both. Nothing is synchronised in between: the weights, arranged once in
the order in which lanes hold fragments, come from L1 and L2 as one coalesced vector per lane and fragment, those of
the next step under way while this one's are multiplied. Pixel fragments are filled by hand, two channels at a time,
because a shift breaks the alignment that load_matrix_sync asks for; which elements a lane holds is learnt by loading a
table of indices. The last row and column, which would need a tile of their own for one line, come from a small kernel
in float32. Up to 64 input channels; up to sixteen stand three times in the product, as high and low parts of x and
weights, so that it is as exact as float32.

Techniques: tensor cores, half precision scaled by powers of two, implicit matrix product, parity classes, fusion
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Pixels;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Weights;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sums;

const int kVectors = Weights::num_elements / 8;  // of 16 bytes, that a lane holds of a fragment
const int kSpan = 34, kPixels = 10 * kSpan;      // of x, under 8 x 32 pixels and their neighbours
const int kStaged = 84;  // of a channel's 32 even columns, which begin 48 before its 32 odd ones; 4 modulo 16 for banks

// The exponent, biased by 127, of the power of two that brings `top` into [2^14, 2^15).
__device__ int exponent_for(float top) { return min(268 - (__float_as_int(top) >> 23), 253); }
__device__ float power(int exponent) { return __int_as_float(exponent << 23); }
__device__ float low(float v) { return v - __half2float(__float2half(v)); }

// [group of 32 outputs][even rows, odd rows][upper row of x, lower][16 inputs][8 fragments][lane]: the elements that a
// lane holds. Fragments are even columns left, even columns here, odd columns here, odd columns right, 16 outputs and
// 16 more of each. An output's terms: inverse scale, bias.
extern "C" __global__ void arrange(const float* w, const float* conv_bias, const float* bias, uint4* arranged,
                                   float2* terms, int inputs, int outputs, int depth, int channels) {
  __shared__ __align__(32) half table[256];
  __shared__ int exponents[16];
  int t = threadIdx.x, lane = t % 32, first = blockIdx.x / (4 * depth) * 32 + blockIdx.y % 2 * 16;
  table[t] = __float2half(t);
  for (int o = t / 32; o < 16; o += 8) {
    float top = 0.0f;
    for (int i = lane; i < inputs * 16 && first + o < outputs; i += 32) {
      top = fmaxf(top, fabsf(w[(i / 16 * outputs + first + o) * 16 + i % 16]));
    }
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    if (lane == 0) exponents[o] = exponent_for(top);
  }
  __syncthreads();
  if (t >= 32) return;
  Weights index;
  wmma::load_matrix_sync(index, table, 16);
  int odd = blockIdx.x / (2 * depth) % 2, lower = blockIdx.x / depth % 2;
  int a = lower ? 1 - odd : 3 - odd;  // even rows: taps 3 and 1; odd rows: 2 and 0
  int b = blockIdx.y / 2 == 0 ? 3 : blockIdx.y / 2 == 1 ? 1 : blockIdx.y / 2 == 2 ? 2 : 0;
  for (int q = 0; q < kVectors; ++q) {
    __align__(16) half held[8];
    for (int e = 0; e < 8; ++e) {
      int i = __half2float(index.x[q * 8 + e]), o = first + i / 16, c = blockIdx.x % depth * 16 + i % 16;
      bool real = o < outputs && c % channels < inputs;
      float exact = real ? w[((c % channels * outputs + o) * 4 + a) * 4 + b] * power(exponents[i / 16]) : 0.0f;
      held[e] = __float2half(c / channels == 2 ? low(exact) : exact);
    }
    arranged[((blockIdx.x * 8 + blockIdx.y) * kVectors + q) * 32 + lane] = *(const uint4*)held;
  }
  if (t < 16 && first + t < outputs) {
    terms[first + t] = make_float2(power(254 - exponents[t]), conv_bias[first + t] - bias[first + t]);
  }
}

// Within 1e-7 of tanh, and of its relative size near zero.
__device__ float fast_tanh(float v) {
  float s = v * v, near = v + v * s * (s * 0.13333333f - 0.33333333f);
  return s < 0.01f ? near : 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * v));
}

// kChannels channels, padded, in kInputs places: high parts, low parts, high parts again.
template <int kInputs, int kChannels>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const uint4* __restrict__ weights, const float2* __restrict__ terms,
     float* __restrict__ out, int inputs, int outputs, int height, int width, int tiles) {
  constexpr int kPitch = kInputs + 8;  // of a pixel, 16 bytes against bank conflicts
  extern __shared__ __align__(128) half tile[];
  __shared__ float tops[4];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, plane = height * width;
  int column = blockIdx.x % tiles * 32, row = blockIdx.x / tiles * 8;

  float v[3][kChannels], top = 0.0f;
  x += (size_t)blockIdx.y * inputs * plane;
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    int p = t + 128 * j, y = row + p / kSpan - 1, z = column + p % kSpan - 1;
    bool inside = y >= 0 && y < height && z >= 0 && z < width && p < kPixels;
    #pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      v[j][c] = inside ? __ldcg(x + (y * width + z + min(c, inputs - 1) * plane)) : 0.0f;
    }
  }
  #pragma unroll
  for (int i = 0; i < 3 * kChannels; ++i) top = fmaxf(top, fabsf(v[i / kChannels][i % kChannels]));
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  tile[t] = __float2half(t);
  tile[t + 128] = __float2half(t + 128);
  if (lane == 0) tops[warp] = top;
  __syncthreads();
  Pixels index;
  wmma::load_matrix_sync(index, tile, 16);
  const half* from[Pixels::num_elements / 2];
  for (int e = 0; e < Pixels::num_elements / 2; ++e) {
    int i = __half2float(index.x[2 * e]);
    from[e] = tile + (warp * 2 * kSpan + i / 16) * kPitch + i % 16;
  }
  int exponent = exponent_for(fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3])));
  float scale = power(exponent), inverse = power(254 - exponent);
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int c = 0; c < kInputs; c += 8) {
      __align__(16) half2 rounded[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        float a = v[j][c % kChannels + 2 * i] * scale, b = v[j][c % kChannels + 2 * i + 1] * scale;
        rounded[i] = c / kChannels == 1 ? __floats2half2_rn(low(a), low(b)) : __floats2half2_rn(a, b);
      }
      if (j < 2 || t < kPixels - 256) *(uint4*)(tile + (t + 128 * j) * kPitch + c) = *(const uint4*)rounded;
    }
  }
  const uint4* mine = weights + lane;
  uint4 next[8 * kVectors];
  #pragma unroll
  for (int i = 0; i < 8 * kVectors; ++i) next[i] = mine[i * 32];
  __syncthreads();

  float* staged = (float*)(tile + kPixels * kPitch) + warp * 16 * kStaged;
  int high = 2 * height + 1, wide = 2 * width + 1;
  #pragma unroll 1
  for (int pass = 0; pass < (outputs + 31) / 32 * 2; ++pass) {
    Sums sums[4][4];  // even columns, odd columns, 16 outputs and 16 more of each; pixels
    #pragma unroll
    for (int i = 0; i < 16; ++i) wmma::fill_fragment(sums[i / 4][i % 4], 0.0f);
    #pragma unroll 1
    for (int lower = 0; lower < 2; ++lower) {
      int shift = (pass % 2 + lower) * kSpan * kPitch;
      #pragma unroll
      for (int k = 0; k < kInputs; k += 16) {
        mine += 8 * kVectors * 32;  // one step more is allocated than there are
        #pragma unroll
        for (int tap = 0; tap < 3; ++tap) {
          Weights weight[4];
          #pragma unroll
          for (int m = tap < 2 ? 0 : 2; m < (tap > 0 ? 4 : 2); ++m) {
            #pragma unroll
            for (int q = 0; q < kVectors; ++q) {
              int i = (m + 2 * tap) * kVectors + q;
              *(uint4*)(weight[m].x + q * 8) = next[i];
              next[i] = mine[i * 32];
            }
          }
          #pragma unroll
          for (int n = 0; n < 4; ++n) {
            Pixels pixel;
            #pragma unroll
            for (int e = 0; e < Pixels::num_elements / 2; ++e) {
              const half* at = from[e] + shift + (n / 2 * kSpan + n % 2 * 16 + tap) * kPitch + k;
              ((half2*)pixel.x)[e] = *(const half2*)at;
            }
            #pragma unroll
            for (int m = tap < 2 ? 0 : 2; m < (tap > 0 ? 4 : 2); ++m) {
              wmma::mma_sync(sums[m][n], pixel, weight[m], sums[m][n]);
            }
          }
        }
      }
    }
    #pragma unroll
    for (int m = 0; m < 2; ++m) {
      #pragma unroll
      for (int r = 0; r < 2; ++r) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          wmma::store_matrix_sync(staged + n / 2 * 48 + n % 2 * 16, sums[n / 2 * 2 + m][r * 2 + n % 2], kStaged,
                                  wmma::mem_col_major);
        }
        __syncwarp();
        int y = row + warp * 2 + r, first = pass / 2 * 32 + m * 16, last = y < height ? min(16, outputs - first) : 0;
        for (int z = 2 * column + lane; z < min(2 * column + 64, 2 * width); z += 32) {
          const float* sum = staged + z % 2 * 48 + z / 2 - column;
          float* target = out + (((size_t)blockIdx.y * outputs + first) * high + 2 * y + pass % 2) * wide + z;
          #pragma unroll 8
          for (int c = 0; c < last; ++c) {
            float2 term = terms[first + c];
            *target = fast_tanh(sum[c * kStaged] * inverse * term.x + term.y);
            target += high * wide;
          }
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
        conv, depth, channels = conv_64, 4, 64
    elif inputs > 16:
        conv, depth, channels = conv_32, 2, 32
    else:
        conv, depth, channels = conv_16, 3, 16
    steps = (outputs + 31) // 32 * 4 * depth
    weights = cp.empty((steps + 1, 8, 2, 32, 4), cp.float32)
    terms = cp.empty((outputs, 2), cp.float32)
    out = cp.empty((batch, outputs, 2 * height + 1, 2 * width + 1), cp.float32)
    arrange((steps, 8), (256,), (weight, conv_bias, bias, weights, terms, inputs, outputs, depth, channels))
    tiles = (width + 31) // 32
    shared = 340 * (depth * 16 + 8) * 2 + 4 * 16 * 84 * 4
    conv.max_dynamic_shared_size_bytes = shared
    grid = (tiles * ((height + 7) // 8), batch)
    conv(grid, (128,), (x, weights, terms, out, inputs, outputs, height, width, tiles), shared_mem=shared)
    args = (x, bias, weight, conv_bias, out, inputs, outputs, height, width)
    edges(((max(height, width) + 128) // 128, 2, batch * ((outputs + 7) // 8)), (128,), args)
    return out
