"""Convolution, relu and both biases in one tensor-core kernel, whose operands are scaled into the range of half.

The reference convolves and then passes over its output for relu and for the bias, a gigabyte read and written each
time; here all happens before the only store. TF32, which the reference uses, and half both keep eleven bits, but
tensor cores multiply halves several times faster. The range is what half lacks, so powers of two, which change no bit,
bring every output channel's weights and every tile of x to a largest magnitude in [2^14, 2^15); the inverse powers are
applied to the sums. Elements 2^-28 of the largest in their tile and smaller lose bits that TF32 would keep.

The convolution is a product of the shifted pixels with the weights (9 taps x input channels by output channels),
without im2col: a block loads 10 x 34 pixels, all channels, into registers, finds the largest there, rounds, and keeps
them as [pixel][channel] in shared memory, where a tap is an offset of whole pixels. Each of four warps holds the sums
of 2 x 32 pixels x 64 outputs. The pixels of a fragment are two apart, so that a loaded one serves up to two of the
three taps of a row. Nothing is synchronised between taps: the weights, arranged once in the order in which lanes hold
fragments, come from L1 as one coalesced vector per lane and fragment; x is loaded around L1, so that they stay there.
Pixel fragments are filled by hand, two channels at a time, because a shift breaks the alignment that load_matrix_sync
asks for; which elements a lane holds is learnt by loading a table of indices. Two blocks share a multiprocessor: one
multiplies while the other loads or stores. Up to 64 input channels; up to eight stand three times in the product, as
high and low parts of x and weights, so that it is as exact as float32.

Techniques: tensor cores, half precision scaled by powers of two, implicit matrix product, fusion, arranged weights
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
const int kSpan = 34, kPixels = 10 * kSpan;      // of x, under 8 x 32 outputs
const int kStaged = 68;  // pitch of a channel's 64 sums on their way out: 4 modulo 16, against bank conflicts

// The exponent, biased by 127, of the power of two that brings `top` into [2^14, 2^15).
__device__ int exponent_for(float top) { return min(268 - (__float_as_int(top) >> 23), 253); }
__device__ float power(int exponent) { return __int_as_float(exponent << 23); }
__device__ float low(float v) { return v - __half2float(__float2half(v)); }

// [group of 16 outputs in passes of `pass`][row of taps][16 inputs][tap][lane]: the elements of a fragment
// that a lane holds.
// An output's terms: inverse scale, bias before relu, bias after it.
extern "C" __global__ void arrange(const float* w, const float* before, const float* after, uint4* arranged,
                                   float4* terms, int inputs, int outputs, int channels, int pass) {
  __shared__ __align__(32) half table[256];
  __shared__ int exponents[16];
  int t = threadIdx.x, lane = t % 32, first = blockIdx.y * 16, steps = gridDim.x, depth = steps / 9;
  table[t] = __float2half(t);
  for (int o = t / 32; o < 16; o += 8) {
    float top = 0.0f;
    for (int i = lane; i < inputs * 9 && first + o < outputs; i += 32) {
      top = fmaxf(top, fabsf(w[(first + o) * inputs * 9 + i]));
    }
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    if (lane == 0) exponents[o] = exponent_for(top);
  }
  __syncthreads();
  if (t >= 32) return;
  Weights index;
  wmma::load_matrix_sync(index, table, 16);
  int at = (first / 16 / pass * steps + blockIdx.x) * pass + first / 16 % pass;
  for (int q = 0; q < kVectors; ++q) {
    __align__(16) half held[8];
    for (int e = 0; e < 8; ++e) {
      int i = __half2float(index.x[q * 8 + e]), o = first + i / 16, c = blockIdx.x / 3 % depth * 16 + i % 16;
      bool real = o < outputs && c % channels < inputs && c < 3 * channels;
      int from = (o * inputs + c % channels) * 9 + blockIdx.x / (3 * depth) * 3 + blockIdx.x % 3;
      float exact = real ? w[from] * power(exponents[i / 16]) : 0.0f;
      held[e] = __float2half(c / channels == 2 ? low(exact) : exact);
    }
    arranged[(at * kVectors + q) * 32 + lane] = *(const uint4*)held;
  }
  if (blockIdx.x == 0 && t < 16 && first + t < outputs) {
    terms[first + t] = make_float4(power(254 - exponents[t]), before[first + t], after[first + t], 0.0f);
  }
}

// kChannels channels, padded, in kPlaces: high parts, low parts, high parts again; 4 warps, each with
// 2 x 32 pixels and kN x 16 outputs at a time.
template <int kPlaces, int kChannels, int kN>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const uint4* __restrict__ weights, const float4* __restrict__ terms,
     float* __restrict__ out, int inputs, int outputs, int height, int width, int tiles) {
  constexpr int kPitch = kPlaces + 4;  // of a pixel: two are 4 modulo 8 words apart, against bank conflicts
  extern __shared__ __align__(128) half tile[];
  __shared__ float tops[4];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, plane = height * width;
  int column = blockIdx.x % tiles * 32, row = blockIdx.x / tiles * 8;

  // Pixels beyond an edge reach no output that exists, so the last ones stand in for them; weights beyond are zero.
  float v[3][kChannels], top = 0.0f;
  x += (size_t)blockIdx.y * inputs * plane;
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    int p = min(t + 128 * j, kPixels - 1);
    const float* pixel = x + min(row + p / kSpan, height - 1) * width + min(column + p % kSpan, width - 1);
    #pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      v[j][c] = __ldcg(pixel);
      pixel += c + 1 < inputs ? plane : 0;
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
    from[e] = tile + (warp * 2 * kSpan + i / 16 * 2) * kPitch + i % 16;
  }
  int exponent = exponent_for(fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3])));
  float scale = power(exponent), inverse = power(254 - exponent);
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    #pragma unroll
    for (int c = 0; c < kPlaces; c += 4) {
      __align__(8) half2 rounded[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        float a = v[j][c % kChannels + 2 * i] * scale, b = v[j][c % kChannels + 2 * i + 1] * scale;
        rounded[i] = c / kChannels == 1 ? __floats2half2_rn(low(a), low(b)) : __floats2half2_rn(a, b);
      }
      if (j < 2 || t < kPixels - 256) *(uint2*)(tile + (t + 128 * j) * kPitch + c) = *(const uint2*)rounded;
    }
  }
  const uint4* mine = weights + lane;
  __syncthreads();

  float* staged = (float*)(tile + kPixels * kPitch) + warp * 16 * kStaged;
  int high = height - 2, wide = width - 2;
  row += warp * 2;
  column += lane;
  int rows = column < wide ? min(2, high - row) : 0;  // of this lane's outputs
  for (int begin = 0; begin < outputs; begin += kN * 16) {
    Sums sums[4][kN];
    #pragma unroll
    for (int i = 0; i < 4 * kN; ++i) wmma::fill_fragment(sums[i / kN][i % kN], 0.0f);
    #pragma unroll 1
    for (int down = 0; down < 3; ++down) {
      int shift = down * kSpan * kPitch;
      #pragma unroll
      for (int k = 0; k < kPlaces; k += 16) {
        Weights weight[3][kN];
        #pragma unroll
        for (int i = 0; i < 3 * kN * kVectors; ++i) {
          *(uint4*)(weight[i / kVectors / kN][i / kVectors % kN].x + i % kVectors * 8) = mine[i * 32];
        }
        mine += 3 * kN * kVectors * 32;
        #pragma unroll
        for (int right = 0; right < 4; ++right) {
          #pragma unroll
          for (int r = 0; r < 2; ++r) {
            Pixels pixel;
            #pragma unroll
            for (int e = 0; e < Pixels::num_elements / 2; ++e) {
              ((half2*)pixel.x)[e] = *(const half2*)(from[e] + shift + (r * kSpan + right) * kPitch + k);
            }
            #pragma unroll
            for (int m = 0; m < 2; ++m) {
              if (right < m || right - m > 2) continue;
              #pragma unroll
              for (int n = 0; n < kN; ++n) {
                wmma::mma_sync(sums[r * 2 + m][n], pixel, weight[right - m][n], sums[r * 2 + m][n]);
              }
            }
          }
        }
      }
    }
    #pragma unroll
    for (int n = 0; n < kN; ++n) {
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        wmma::store_matrix_sync(staged + m * 16, sums[m][n], kStaged, wmma::mem_col_major);
      }
      __syncwarp();
      int first = begin + n * 16, last = min(16, outputs - first);
      for (int r = 0; r < rows; ++r) {
        float* target = out + (((size_t)blockIdx.y * outputs + first) * high + row + r) * wide + column;
        #pragma unroll 8
        for (int c = 0; c < last; ++c) {
          float4 term = terms[first + c];
          float sum = staged[c * kStaged + r * 32 + lane % 2 * 16 + lane / 2] * inverse;
          *target = fmaxf(sum * term.x + term.y, 0.0f) + term.z;
          target += high * wide;
        }
      }
      __syncwarp();
    }
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
module = cp.RawModule(code=source, name_expressions=("conv<64, 64, 4>", "conv<32, 8, 2>"))
conv_wide = module.get_function("conv<64, 64, 4>")
conv_small = module.get_function("conv<32, 8, 2>")


def forward(x, bias, weight, conv_bias):
    batch, inputs, height, width = x.shape
    outputs = weight.shape[0]
    conv, depth, channels, groups = (conv_wide, 4, 64, 4) if inputs > 8 else (conv_small, 2, 8, 2)
    passes = (outputs + groups * 16 - 1) // (groups * 16)
    weights = cp.empty((passes * 9 * depth * groups, 2, 32, 4), cp.float32)
    terms = cp.empty((outputs, 4), cp.float32)
    out = cp.empty((batch, outputs, height - 2, width - 2), cp.float32)
    args = (weight, conv_bias, bias, weights, terms, inputs, outputs, channels, groups)
    arrange((9 * depth, passes * groups), (256,), args)
    tiles = (width + 29) // 32
    shared = 340 * (depth * 16 + 4) * 2 + 4 * 16 * 68 * 4
    conv.max_dynamic_shared_size_bytes = shared
    grid = (tiles * ((height + 5) // 8), batch)
    conv(grid, (128,), (x, weights, terms, out, inputs, outputs, height, width, tiles), shared_mem=shared)
    return out
