"""A convolution of operands scaled into half's range; its blocks then normalise an earlier image, still in L2.

The reference convolves, reads its output for the statistics and again for the result. Here every warp sums up its
piece of each channel while it still lies in shared memory (mean and sum of squares about it, merged later by Chan's
formula), and a block that has convolved its tile normalises, in place, a share of the image that lies `lag` blocks
back: all its tiles are done by then, and it is still in L2, so that memory sees little but one read of x and one write
of the output, and while one block normalises, its neighbour on the multiprocessor multiplies. Nobody waits: a counter
for each image says whether all its tiles are done; a share that comes too early goes on a list, and a last launch does
what is listed, so the result does not depend on the order of blocks.

What shifts a plane as a whole is taken out again by the norm: the convolution's bias is never added, and x is centred,
channel by channel, at the median of three of its pixels, so that rounding is relative to what varies.

TF32, which the reference uses, and half both keep eleven bits, but tensor cores multiply halves several times faster.
The range is what half lacks, so powers of two, which change no bit, bring every output channel's weights and every
tile of x to a largest magnitude in [2^14, 2^15); the inverse powers are applied to the sums. Elements 2^-28 of the
largest in their tile and smaller lose bits that TF32 would keep.

The convolution is a product of the shifted pixels with the weights (9 taps x input channels by output channels),
without im2col: a block loads 10 x 34 pixels, all channels, into registers, finds the largest there, rounds, and keeps
them as [pixel][channel] in shared memory, where a tap is an offset of whole pixels. Each of four warps holds the sums
of 2 x 32 pixels x 64 outputs. Nothing is synchronised between taps: the weights, arranged once in the order in which
lanes hold fragments, come from L1 as one coalesced vector per lane and fragment, those of the next step under way
while this one's are multiplied; x is loaded around L1, so that they stay there. Pixel fragments are filled by hand,
two channels at a time, because a shift breaks the alignment that load_matrix_sync asks for; which elements a lane
holds is learnt by loading a table of indices. Two blocks share a multiprocessor: one multiplies while the other loads
or stores. Up to 64 input channels; up to eight stand three times in the product, as high and low parts of x and
weights, so that it is as exact as float32.

Techniques: tensor cores, scaled half precision, implicit matrix product, reuse through L2, work list, Chan's formula
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

// [group of 16 outputs in passes of `pass`][step: tap, 16 inputs][lane]: the elements of a fragment that a lane holds.
extern "C" __global__ void arrange(const float* w, uint4* arranged, float* inverses, int inputs, int outputs,
                                   int channels, int pass) {
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
      int i = __half2float(index.x[q * 8 + e]), o = first + i / 16, c = blockIdx.x % depth * 16 + i % 16;
      bool real = o < outputs && c % channels < inputs && c < 3 * channels;
      float exact = real ? w[(o * inputs + c % channels) * 9 + blockIdx.x / depth] * power(exponents[i / 16]) : 0.0f;
      held[e] = __float2half(c / channels == 2 ? low(exact) : exact);
    }
    arranged[(at * kVectors + q) * 32 + lane] = *(const uint4*)held;
  }
  if (blockIdx.x == 0 && t < 16 && first + t < outputs) {
    inverses[first + t] = power(254 - exponents[t]);
  }
}

__device__ float square(float v) { return v * v; }

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// Share b % blocks of the planes of image b / blocks, whose pieces are 2 rows x 32 columns; a warp takes half a plane.
__device__ void normalise(float* out, const float2* pieces, int b, int blocks, int outputs, int high, int wide) {
  int lane = threadIdx.x % 32, share = (outputs + blocks - 1) / blocks, tiles = (wide + 31) / 32, size = high * wide;
  for (int half_plane = threadIdx.x / 32; half_plane < 2 * share; half_plane += 4) {
    int o = b % blocks * share + half_plane / 2;
    if (o >= outputs) return;
    const float2* own = pieces + (size_t)(b / blocks) * blocks * 4 * outputs + o;
    float mean = 0.0f, squares = 0.0f;
    #pragma unroll 4
    for (int i = lane; i < blocks * 4; i += 32) {
      int row = i / 4 / tiles * 8 + i % 4 * 2, column = i / 4 % tiles * 32;
      mean += max(0, min(2, high - row)) * min(32, wide - column) * __ldcg(own + i * outputs).x;
    }
    mean = warp_sum(mean) / size;
    #pragma unroll 4
    for (int i = lane; i < blocks * 4; i += 32) {
      int row = i / 4 / tiles * 8 + i % 4 * 2, column = i / 4 % tiles * 32;
      float2 piece = __ldcg(own + i * outputs);
      squares += piece.y + max(0, min(2, high - row)) * min(32, wide - column) * square(piece.x - mean);
    }
    float scale = 0.5f * rsqrtf(warp_sum(squares) / size + 1e-5f);
    float* plane = out + ((size_t)(b / blocks) * outputs + o) * size;
    if (size % 4 == 0) {
      float4* vectors = (float4*)plane;
      int middle = size / 8, end = half_plane % 2 ? size / 4 : middle;
      for (int i = half_plane % 2 * middle + lane; i < end; i += 256) {
        float4 v[8];
        #pragma unroll
        for (int k = 0; k < 8; ++k) {
          if (i + 32 * k < end) v[k] = __ldcg(vectors + i + 32 * k);
        }
        #pragma unroll
        for (int k = 0; k < 8; ++k) {
          v[k] = make_float4((v[k].x - mean) * scale, (v[k].y - mean) * scale, (v[k].z - mean) * scale,
                             (v[k].w - mean) * scale);
          if (i + 32 * k < end) __stcs(vectors + i + 32 * k, v[k]);
        }
      }
    } else {
      for (int i = half_plane % 2 * 32 + lane; i < size; i += 64) plane[i] = (__ldcg(plane + i) - mean) * scale;
    }
  }
}

// kChannels channels, padded, in kPlaces: high parts, low parts, high parts again; 4 warps, each with
// 2 x 32 pixels and kN x 16 outputs at a time.
template <int kPlaces, int kChannels, int kN>
__device__ void convolve(const float* __restrict__ x, const uint4* __restrict__ weights,
                         const float* __restrict__ inverses, float* out, float2* pieces, int b, int blocks, int inputs,
                         int outputs, int height, int width) {
  constexpr int kPitch = kPlaces + 8;  // of a pixel, 16 bytes against bank conflicts
  extern __shared__ __align__(128) half tile[];
  __shared__ float tops[4], centres[kChannels];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, plane = height * width;
  int tiles = (width + 29) / 32, column = b % blocks % tiles * 32, row = b % blocks / tiles * 8;

  // Pixels beyond an edge reach no output that exists, so the last ones stand in for them; weights beyond are zero.
  float v[3][kChannels], top = 0.0f;
  x += (size_t)(b / blocks) * inputs * plane;
  #pragma unroll
  for (int j = 0; j < 3; ++j) {
    int p = j < 2 ? t + 128 * j : min(t + 256, kPixels - 1);
    int pixel = min(row + p / kSpan, height - 1) * width + min(column + p % kSpan, width - 1);
    #pragma unroll
    for (int c = 0; c < kChannels; ++c) v[j][c] = __ldcg(x + (pixel + min(c, inputs - 1) * plane));
  }
  if (t < kChannels) {
    const float* sample = x + min(t, inputs - 1) * plane;
    float l = sample[height / 4 * width + width / 4], m = sample[height / 2 * width + width / 2];
    float n = sample[height * 3 / 4 * width + width * 3 / 4];
    centres[t] = fmaxf(fminf(l, m), fminf(fmaxf(l, m), n));
  }
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 3 * kChannels; ++i) {
    v[i % 3][i / 3] -= centres[i / 3];
    top = fmaxf(top, fabsf(v[i % 3][i / 3]));
  }
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
    for (int c = 0; c < kPlaces; c += 8) {
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
  uint4 next[kN * kVectors];
  #pragma unroll
  for (int i = 0; i < kN * kVectors; ++i) next[i] = mine[i * 32];
  __syncthreads();

  float* staged = (float*)(tile + kPixels * kPitch) + warp * 16 * kStaged;
  int high = height - 2, wide = width - 2;
  row += warp * 2;
  int rows = max(0, min(2, high - row)), columns = min(32, wide - column);  // of outputs
  pieces += ((size_t)b * 4 + warp) * outputs;
  for (int begin = 0; begin < outputs; begin += kN * 16) {
    Sums sums[4][kN];
    #pragma unroll
    for (int i = 0; i < 4 * kN; ++i) wmma::fill_fragment(sums[i / kN][i % kN], 0.0f);
    #pragma unroll 1
    for (int tap = 0; tap < 9; ++tap) {
      int shift = (tap / 3 * kSpan + tap % 3) * kPitch;
      #pragma unroll
      for (int k = 0; k < kPlaces; k += 16) {
        Weights weight[kN];
        mine += kN * kVectors * 32;  // one step more is allocated than there are
        #pragma unroll
        for (int i = 0; i < kN * kVectors; ++i) {
          *(uint4*)(weight[i / kVectors].x + i % kVectors * 8) = next[i];
          next[i] = mine[i * 32];
        }
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          Pixels pixel;
          #pragma unroll
          for (int e = 0; e < Pixels::num_elements / 2; ++e) {
            ((half2*)pixel.x)[e] = *(const half2*)(from[e] + shift + (m / 2 * kSpan + m % 2 * 16) * kPitch + k);
          }
          #pragma unroll
          for (int n = 0; n < kN; ++n) wmma::mma_sync(sums[m][n], pixel, weight[n], sums[m][n]);
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
      for (int r = 0; r < rows && lane < columns; ++r) {
        float* target = out + (((size_t)(b / blocks) * outputs + first) * high + row + r) * wide + column + lane;
        #pragma unroll 8
        for (int c = 0; c < last; ++c) {
          *target = staged[c * kStaged + r * 32 + lane] * inverse * inverses[first + c];
          target += high * wide;
        }
      }
      // Two lanes have a channel of their own now, a row each.
      const float4* own = (const float4*)(staged + lane % 16 * kStaged + lane / 16 * 32);
      int here = lane / 16 < rows ? columns : 0;
      float mean = 0.0f, squares = 0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        float4 q = own[i];
        mean += ((4 * i < here ? q.x : 0.0f) + (4 * i + 1 < here ? q.y : 0.0f)) +
                ((4 * i + 2 < here ? q.z : 0.0f) + (4 * i + 3 < here ? q.w : 0.0f));
      }
      mean = (mean + __shfl_xor_sync(0xffffffffu, mean, 16)) / max(1, rows * columns);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        float4 q = own[i];
        squares += ((4 * i < here ? square(q.x - mean) : 0.0f) + (4 * i + 1 < here ? square(q.y - mean) : 0.0f)) +
                   ((4 * i + 2 < here ? square(q.z - mean) : 0.0f) + (4 * i + 3 < here ? square(q.w - mean) : 0.0f));
      }
      squares += __shfl_xor_sync(0xffffffffu, squares, 16);
      if (lane < last) {
        float back = inverses[first + lane];
        pieces[first + lane] = make_float2(mean * inverse * back, squares * inverse * back * inverse * back);
      }
      __syncwarp();
    }
  }
}

template <int kPlaces, int kChannels, int kN>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const uint4* __restrict__ weights, const float* __restrict__ inverses,
     float* __restrict__ out, float2* __restrict__ pieces, int* __restrict__ done, int* __restrict__ missed,
     int blocks, int inputs, int outputs, int height, int width, int total, int lag) {
  __shared__ bool ready;
  int b = blockIdx.x, old = b - lag;
  if (b < total) {
    convolve<kPlaces, kChannels, kN>(x, weights, inverses, out, pieces, b, blocks, inputs, outputs, height, width);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (b < total) atomicAdd(&done[b / blocks], 1);
    ready = old >= 0 && *(volatile int*)&done[old / blocks] == blocks;
    if (old >= 0 && !ready) missed[1 + atomicAdd(missed, 1)] = old;
  }
  __syncthreads();
  __threadfence();
  if (ready) normalise(out, pieces, old, blocks, outputs, height - 2, width - 2);
}

extern "C" __global__ void __launch_bounds__(128, 2)
leftovers(float* out, const float2* pieces, const int* __restrict__ missed, int blocks,
          int outputs, int high, int wide) {
  for (int i = blockIdx.x; i < missed[0]; i += gridDim.x) {
    normalise(out, pieces, missed[1 + i], blocks, outputs, high, wide);
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
leftovers = cp.RawKernel(source, "leftovers")
module = cp.RawModule(code=source, name_expressions=("conv<64, 64, 4>", "conv<32, 8, 2>"))
conv_wide = module.get_function("conv<64, 64, 4>")
conv_small = module.get_function("conv<32, 8, 2>")


AHEAD = 128  # blocks beyond an image by which the convolution leads: half of those that run at a time


def forward(x, weight, bias):
    batch, inputs, height, width = x.shape
    outputs, high, wide = weight.shape[0], height - 2, width - 2
    conv, depth, channels, groups = (conv_wide, 4, 64, 4) if inputs > 8 else (conv_small, 2, 8, 2)
    passes = (outputs + groups * 16 - 1) // (groups * 16)
    blocks = (wide + 31) // 32 * ((high + 7) // 8)  # of an image
    total = batch * blocks
    lag = min(total, blocks + AHEAD)
    weights = cp.empty(((passes * 9 * depth + 1) * groups, 2, 32, 4), cp.float32)
    inverses = cp.empty((outputs,), cp.float32)
    pieces = cp.empty((total * 4, outputs, 2), cp.float32)
    done = cp.zeros((batch,), cp.int32)
    missed = cp.zeros((total + 1,), cp.int32)
    out = cp.empty((batch, outputs, high, wide), cp.float32)
    arrange((9 * depth, passes * groups), (256,), (weight, weights, inverses, inputs, outputs, channels, groups))
    shared = 340 * (depth * 16 + 8) * 2 + 4 * 16 * 68 * 4
    conv.max_dynamic_shared_size_bytes = shared
    args = (x, weights, inverses, out, pieces, done, missed, blocks, inputs, outputs, height, width, total, lag)
    conv((total + lag,), (128,), args, shared_mem=shared)
    leftovers((min(total, 264),), (128,), (out, pieces, missed, blocks, outputs, high, wide))
    return out
