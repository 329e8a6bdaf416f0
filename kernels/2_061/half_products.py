"""A transposed convolution of halves that leaves relu's statistics in pieces, then one pass to normalise.

The reference convolves, passes over its output for relu, reads it for the statistics and again for the result. Here
relu and every warp's piece of the statistics (mean and sum of squares about it, merged later by Chan's formula) are
computed while the piece lies in shared memory, so that one read and one write follow the convolution.

TF32, which the reference uses, and half both keep eleven bits, but tensor cores multiply halves several times faster.
The range is what half lacks, so powers of two, which change no bit, bring every output channel's weights and every
sample of x to a largest magnitude in [2^14, 2^15); the inverse powers are applied to the sums. Elements 2^-28 of the
largest in their sample and smaller lose bits that TF32 would keep. x is small beside the output: it is read for the
largest, then rounded and laid out once as [voxel][channel], two zeros around every slice.

With stride 1 a transposed convolution is a convolution of that with the filter turned round: a product of the shifted
voxels with the weights (27 taps x input channels by output channels). A block has 256 consecutive voxels of one slice
of the output, rows padded by two, so that a tap within a slice is one offset into shared memory, where the voxels and
the halo of a slice of x lie: one piece of memory, copied asynchronously. The three slices follow one another; those
outside x are left out. Each of four warps holds the sums of 64 voxels x 64 outputs. Nothing is synchronised between
taps: the weights, arranged once in the order in which lanes hold fragments, come from L1 and L2 as one coalesced vector
per lane and fragment, those of the next step under way while this one's are multiplied. Voxel fragments are filled by
hand, two channels at a time, because a shift breaks the alignment that load_matrix_sync asks for; which elements a lane
holds is learnt by loading a table of indices. Up to 64 input channels and slices up to 34 wide. Up to eight channels
stand three times in the product, as high and low parts of x and weights, so that it is as exact as float32.

Techniques: tensor cores, half precision scaled by powers of two, implicit matrix product, statistics in pieces
"""
import cupy as cp

source = r'''
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> Voxels;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> Weights;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Sums;

const int kVectors = Weights::num_elements / 8;  // of 16 bytes, that a lane holds of a fragment
const int kStaged = 68;  // pitch of a channel's 64 sums on their way out: 4 modulo 16, against bank conflicts

// The exponent, biased by 127, of the power of two that brings a number of these bits into [2^14, 2^15).
__device__ int exponent_for(int top) { return min(268 - (top >> 23), 253); }
__device__ float power(int exponent) { return __int_as_float(exponent << 23); }
__device__ float low(float v) { return v - __half2float(__float2half(v)); }
__device__ float square(float v) { return v * v; }

// [group of outputs][slice][row, turned round][column, turned round][16 inputs][16 outputs][lane]: the elements of a
// fragment that a lane holds.
extern "C" __global__ void arrange(const float* w, uint4* arranged, float* inverses, int inputs, int outputs,
                                   int channels, int group) {
  __shared__ __align__(32) half table[256];
  __shared__ int exponents[16];
  int t = threadIdx.x, lane = t % 32, first = blockIdx.y * 16, depth = gridDim.x / 27;
  table[t] = __float2half(t);
  for (int o = t / 32; o < 16; o += 8) {
    float top = 0.0f;
    for (int i = lane; i < inputs * 27 && first + o < outputs; i += 32) {
      top = fmaxf(top, fabsf(w[(i / 27 * outputs + first + o) * 27 + i % 27]));
    }
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    if (lane == 0) exponents[o] = exponent_for(__float_as_int(top));
  }
  __syncthreads();
  if (t >= 32) return;
  Weights index;
  wmma::load_matrix_sync(index, table, 16);
  int tap = blockIdx.x / depth, at = (blockIdx.y / group * gridDim.x + blockIdx.x) * group + blockIdx.y % group;
  tap += 8 - tap % 9 * 2;
  for (int q = 0; q < kVectors; ++q) {
    __align__(16) half held[8];
    for (int e = 0; e < 8; ++e) {
      int i = __half2float(index.x[q * 8 + e]), o = first + i / 16, c = blockIdx.x % depth * 16 + i % 16;
      bool real = o < outputs && c % channels < inputs && c < 3 * channels;
      float exact = real ? w[(c % channels * outputs + o) * 27 + tap] * power(exponents[i / 16]) : 0.0f;
      held[e] = __float2half(c / channels == 2 ? low(exact) : exact);
    }
    arranged[(at * kVectors + q) * 32 + lane] = *(const uint4*)held;
  }
  if (blockIdx.x == 0 && t < 16 && first + t < outputs) inverses[first + t] = power(254 - exponents[t]);
}

// The bits of the largest magnitude of every sample.
extern "C" __global__ void __launch_bounds__(256) largest(const float* __restrict__ x, int* tops, int size) {
  float top = 0.0f;
  x += (size_t)blockIdx.y * size;
  #pragma unroll 16
  for (int i = blockIdx.x * 256 + threadIdx.x; i < size; i += gridDim.x * 256) top = fmaxf(top, fabsf(x[i]));
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  if (threadIdx.x % 32 == 0) atomicMax(&tops[blockIdx.y], __float_as_int(top));
}

// [sample][slice][padded row][padded column][place of a channel]; a thread has eight places.
extern "C" __global__ void __launch_bounds__(256)
lay_out(const float* __restrict__ x, const int* __restrict__ tops, uint4* __restrict__ voxels, int inputs, int size,
        int channels, int places) {
  int span = size + 4, i = blockIdx.x * 256 + threadIdx.x, first = i % (places / 8) * 8;
  int row = i / (places / 8) / span - 2, column = i / (places / 8) % span - 2, plane = gridDim.y * size * size;
  if (row >= span - 2) return;
  bool inside = row >= 0 && row < size && column >= 0 && column < size;
  x += ((size_t)blockIdx.z * inputs * gridDim.y + blockIdx.y) * size * size + row * size + column;
  float scale = power(exponent_for(tops[blockIdx.z])), v[8];
  #pragma unroll
  for (int j = 0; j < 8; ++j) {
    int c = (first + j) % channels;
    v[j] = inside && c < inputs ? x[c * plane] * scale : 0.0f;
  }
  __align__(16) half2 rounded[4];
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    float a = v[2 * j], b = v[2 * j + 1];
    rounded[j] = first / channels == 1 ? __floats2half2_rn(low(a), low(b)) : __floats2half2_rn(a, b);
  }
  voxels[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * span * span * (places / 8) + i] = *(const uint4*)rounded;
}

// kPlaces of channels; 4 warps, each with 64 voxels and kN x 16 outputs.
template <int kPlaces, int kN>
__global__ void __launch_bounds__(128, 2)
conv(const half* __restrict__ x, const int* __restrict__ tops, const uint4* __restrict__ weights,
     const float* __restrict__ inverses, float* __restrict__ out, float2* __restrict__ pieces, int outputs, int depth,
     int size, int tiles) {
  constexpr int kPitch = kPlaces + 8;  // of a voxel, 16 bytes against bank conflicts
  extern __shared__ __align__(128) half tile[];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, slice = blockIdx.y, begin = blockIdx.x / tiles * kN * 16;
  int first = blockIdx.x % tiles * 256, span = size + 4, wide = size + 2;  // of a padded row, of an output row

  tile[t] = __float2half(t);
  tile[t + 128] = __float2half(t + 128);
  __syncthreads();
  Voxels index;
  wmma::load_matrix_sync(index, tile, 16);
  const half* from[Voxels::num_elements / 2];
  for (int e = 0; e < Voxels::num_elements / 2; ++e) {
    int i = __half2float(index.x[2 * e]);
    from[e] = tile + (warp * 64 + i / 16) * kPitch + i % 16;
  }
  Sums sums[4][kN];
  #pragma unroll
  for (int i = 0; i < 4 * kN; ++i) wmma::fill_fragment(sums[i / kN][i % kN], 0.0f);
  int earliest = max(0, slice - depth + 1);
  const uint4* mine = weights + (blockIdx.x / tiles * 27 + earliest * 9) * (kPlaces / 16) * kN * kVectors * 32 + lane;
  uint4 next[kN * kVectors];
  #pragma unroll
  for (int i = 0; i < kN * kVectors; ++i) next[i] = mine[i * 32];

  for (int a = earliest; a < min(3, slice + 1); ++a) {
    const half* part = x + (((size_t)blockIdx.z * depth + slice - a) * span * span + first) * kPlaces;
    __syncthreads();
    for (int i = t; i < (256 + 2 * span + 2) * (kPlaces / 8); i += 128) {
      __pipeline_memcpy_async(tile + i / (kPlaces / 8) * kPitch + i % (kPlaces / 8) * 8, part + i * 8, 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    #pragma unroll 1
    for (int tap = 0; tap < 9; ++tap) {
      int shift = (tap / 3 * span + tap % 3) * kPitch;
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
          Voxels voxel;
          #pragma unroll
          for (int e = 0; e < Voxels::num_elements / 2; ++e) {
            ((half2*)voxel.x)[e] = *(const half2*)(from[e] + shift + m * 16 * kPitch + k);
          }
          #pragma unroll
          for (int n = 0; n < kN; ++n) wmma::mma_sync(sums[m][n], voxel, weight[n], sums[m][n]);
        }
      }
    }
  }

  __syncthreads();  // the tile of x is done with: 16 outputs of a warp at a time pass through its place
  float* staged = (float*)tile + warp * 16 * kStaged;
  int place[2];
  unsigned real[2];  // a bit for each of the 64 voxels that is one
  for (int h = 0; h < 2; ++h) {
    int q = first + warp * 64 + h * 32 + lane;
    bool inside = q / span < wide && q % span < wide;
    place[h] = inside ? q / span * wide + q % span : -1;
    real[h] = __ballot_sync(0xffffffffu, inside);
  }
  int plane = (depth + 2) * wide * wide, count = __popc(real[0]) + __popc(real[1]);
  float inverse = power(254 - exponent_for(tops[blockIdx.z]));
  pieces += (((size_t)blockIdx.z * gridDim.y + slice) * tiles * 4 + blockIdx.x % tiles * 4 + warp) * outputs;
  #pragma unroll
  for (int n = 0; n < kN; ++n) {
    #pragma unroll
    for (int m = 0; m < 4; ++m) {
      for (int e = 0; e < sums[m][n].num_elements; ++e) sums[m][n].x[e] = fmaxf(sums[m][n].x[e], 0.0f);
      wmma::store_matrix_sync(staged + m * 16, sums[m][n], kStaged, wmma::mem_col_major);
    }
    __syncwarp();
    int o = begin + n * 16, last = min(16, outputs - o);
    for (int h = 0; h < 2; ++h) {
      if (place[h] < 0) continue;
      float* target = out + ((size_t)blockIdx.z * outputs + o) * plane + slice * wide * wide + place[h];
      #pragma unroll 8
      for (int c = 0; c < last; ++c) {
        *target = staged[c * kStaged + h * 32 + lane] * inverse * inverses[o + c];
        target += plane;
      }
    }
    // Two lanes have a channel of their own now, 32 voxels each.
    const float4* own = (const float4*)(staged + lane % 16 * kStaged + lane / 16 * 32);
    unsigned here = lane < 16 ? real[0] : real[1];
    float mean = 0.0f, squares = 0.0f;
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      float4 v = own[i];
      mean += ((here >> 4 * i & 1 ? v.x : 0.0f) + (here >> 4 * i & 2 ? v.y : 0.0f)) +
              ((here >> 4 * i & 4 ? v.z : 0.0f) + (here >> 4 * i & 8 ? v.w : 0.0f));
    }
    mean = (mean + __shfl_xor_sync(0xffffffffu, mean, 16)) / max(1, count);
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      float4 v = own[i];
      squares += ((here >> 4 * i & 1 ? square(v.x - mean) : 0.0f) + (here >> 4 * i & 2 ? square(v.y - mean) : 0.0f)) +
                 ((here >> 4 * i & 4 ? square(v.z - mean) : 0.0f) + (here >> 4 * i & 8 ? square(v.w - mean) : 0.0f));
    }
    squares += __shfl_xor_sync(0xffffffffu, squares, 16);
    if (lane < last) {
      float back = inverses[o + lane];
      pieces[o + lane] = make_float2(mean * inverse * back, squares * inverse * back * inverse * back);
    }
    __syncwarp();
  }
}

__device__ float block_sum(float sum) {
  __shared__ float part[16];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 16; ++w) sum += part[w];
  return sum;
}

// How many voxels a piece has: the 64 from q on, in rows of `wide` and two more.
__device__ int area(int q, int wide) {
  int span = wide + 2, last = min(q + 64, wide * span);
  return max(0, last / span * wide + min(last % span, wide) - q / span * wide - min(q % span, wide));
}

// One block per group of channels merges its pieces: mean and reciprocal deviation.
extern "C" __global__ void __launch_bounds__(512)
merge(const float2* __restrict__ pieces, float2* statistics, int count, int grouped, int per_slice, int wide,
      int size) {
  int outputs = grouped * gridDim.x;
  pieces += (size_t)blockIdx.y * count * outputs + blockIdx.x * grouped;
  float mean = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < count * grouped; i += 512) {
    float2 piece = pieces[(size_t)(i / grouped) * outputs + i % grouped];
    mean += piece.x * area(i / grouped % per_slice * 64, wide);
  }
  mean = block_sum(mean) / size;
  for (int i = threadIdx.x; i < count * grouped; i += 512) {
    float2 piece = pieces[(size_t)(i / grouped) * outputs + i % grouped];
    squares += piece.y + square(piece.x - mean) * area(i / grouped % per_slice * 64, wide);
  }
  float scale = rsqrtf(block_sum(squares) / size + 1e-5f);
  if (threadIdx.x == 0) statistics[blockIdx.y * gridDim.x + blockIdx.x] = make_float2(mean, scale);
}

// Rows of blocks are planes; a thread has up to four float4.
extern "C" __global__ void __launch_bounds__(256)
normalise(float4* __restrict__ out, const float2* __restrict__ statistics, const float* __restrict__ scale,
          const float* __restrict__ shift, int outputs, int vectors) {
  int row = gridDim.y - 1 - blockIdx.y, o = row % outputs;  // the last ones may still be in L2
  float2 known = statistics[row / (outputs / 8)];
  float factor = known.y * scale[o], mean = known.x, term = shift[o];
  float4* plane = out + (size_t)row * vectors;
  int first = blockIdx.x * 1024 + threadIdx.x;
  float4 v[4];
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (first + 256 * j < vectors) v[j] = plane[first + 256 * j];
  }
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (first + 256 * j < vectors) {
      plane[first + 256 * j] = make_float4((v[j].x - mean) * factor + term, (v[j].y - mean) * factor + term,
                                           (v[j].z - mean) * factor + term, (v[j].w - mean) * factor + term);
    }
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
largest = cp.RawKernel(source, "largest")
lay_out = cp.RawKernel(source, "lay_out")
merge = cp.RawKernel(source, "merge")
normalise = cp.RawKernel(source, "normalise")
module = cp.RawModule(code=source, name_expressions=("conv<64, 4>", "conv<32, 1>"))
conv_wide = module.get_function("conv<64, 4>")
conv_small = module.get_function("conv<32, 1>")


def forward(x, weight, scale, shift):
    batch, inputs, depth, size, _ = x.shape
    outputs = weight.shape[1]
    conv, places, channels, group = (conv_wide, 64, 64, 4) if inputs > 8 else (conv_small, 32, 8, 1)
    span, wide = size + 4, size + 2
    groups, tiles = (outputs + group * 16 - 1) // (group * 16), ((wide - 1) * span + wide + 255) // 256
    count, plane = tiles * 4 * (depth + 2), (depth + 2) * wide * wide
    weights = cp.empty(((groups * 27 * places // 16 + 1) * group, 2, 32, 4), cp.float32)
    inverses = cp.empty((outputs,), cp.float32)
    tops = cp.zeros((batch,), cp.int32)
    voxels = cp.empty((batch * depth * span * span + 512, places), cp.float16)  # blocks look beyond the last one
    pieces = cp.empty((batch, count, outputs, 2), cp.float32)
    statistics = cp.empty((batch, 8, 2), cp.float32)
    out = cp.empty((batch, outputs, depth + 2, wide, wide), cp.float32)
    args = (weight, weights, inverses, inputs, outputs, channels, group)
    arrange((27 * places // 16, groups * group), (256,), args)
    largest((64, batch), (256,), (x, tops, inputs * depth * size * size))
    grid = ((span * span * places // 8 + 255) // 256, depth, batch)
    lay_out(grid, (256,), (x, tops, voxels, inputs, size, channels, places))
    shared = max((258 + 2 * span) * (places + 8) * 2, 4 * 16 * 68 * 4)
    conv.max_dynamic_shared_size_bytes = shared
    args = (voxels, tops, weights, inverses, out, pieces, outputs, depth, size, tiles)
    conv((tiles * groups, depth + 2, batch), (128,), args, shared_mem=shared)
    args = (pieces, statistics, count, outputs // 8, tiles * 4, wide, outputs // 8 * plane)
    merge((8, batch), (512,), args)
    args = (out, statistics, scale, shift, outputs, plane // 4)
    normalise(((plane // 4 + 1023) // 1024, outputs * batch), (256,), args)
    return out
