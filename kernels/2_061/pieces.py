"""A TF32 tensor-core transposed convolution that leaves relu's statistics in pieces, then one pass to normalise.

The reference convolves, passes over its output for relu, reads it for the statistics and again for the result. Here
relu and every warp's piece of the statistics (mean and sum of squares about it, merged later by Chan's formula) are
computed while the piece lies in shared memory, so that one read and one write follow the convolution. With stride 1 a
transposed convolution is a convolution of x, two zeros around it, with the filter turned round: a product of the
weights (output channels by 27 taps x input channels) with the shifted voxels, without im2col. A block has 128
consecutive voxels of one slice of the output, rows padded by two, so that a tap within a slice is one offset into
shared memory, where 128 voxels and the halo of a slice of x lie, all channels, rounded to TF32 once. The three slices
follow one another; those outside x are left out. Each of four warps holds a 64 x 64 tile of sums, so that every
fragment feeds four products. The weights, arranged once in the order in which lanes hold fragments, come from L1 and
L2 as one coalesced float4 per lane and fragment, those of the next step under way while this one's are multiplied.
Voxel fragments are filled by hand, because shifts by a tap break the alignment that load_matrix_sync wants; which
element a lane holds is asked of the hardware, by loading a table of indices. Channels lie 8 modulo 16 words apart, so
that a fragment meets no bank twice. Up to 64 input channels and slices up to 34 wide. Up to eight channels stand
three times in the product, as high and low parts of x and weights, so that it is as exact as float32.

Techniques: tensor cores, implicit matrix product, statistics in the epilogue, Chan's formula, weights in fragment order
"""
import cupy as cp

source = r'''
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Voxels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kPitch = 216;  // of a channel's voxels: 128 and two rows and two columns; 8 modulo 16, against bank conflicts
const int kStaged = 68;  // of a channel's 64 sums on their way out: 4 modulo 32, so that 8 lanes read 8 float4

__device__ float low(float v) { return wmma::__float_to_tf32(v - wmma::__float_to_tf32(v)); }

// [slice][row, turned round][column, turned round][group of 8 inputs][group of 16 outputs][lane]: the four elements of
// the fragment that a lane holds.
extern "C" __global__ void arrange(const float* w, float4* arranged, int inputs, int outputs, int depth, int channels) {
  __shared__ __align__(32) float table[128];
  for (int i = threadIdx.x; i < 128; i += 32) table[i] = i;
  __syncwarp();
  Weights index;
  wmma::load_matrix_sync(index, table, 8);
  int tap = blockIdx.x / depth;
  tap += 8 - tap % 9 * 2;
  float v[4];
  for (int e = 0; e < 4; ++e) {
    int i = index.x[e], o = blockIdx.y * 16 + i / 8, c = blockIdx.x % depth * 8 + i % 8;
    float exact = o < outputs && c % channels < inputs ? w[(c % channels * outputs + o) * 27 + tap] : 0.0f;
    v[e] = c / channels == 2 ? low(exact) : wmma::__float_to_tf32(exact);
  }
  arranged[(blockIdx.x * gridDim.y + blockIdx.y) * 32 + threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ float square(float v) { return v * v; }

// kChannels channels, padded, in kInputs places: high parts, low parts, high parts again. Of four warps two lie above
// each other along the outputs; a warp has kM x 16 outputs of 64 voxels.
template <int kInputs, int kChannels, int kM>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const float4* __restrict__ weights, float* __restrict__ out,
     float2* __restrict__ pieces, int inputs, int outputs, int depth, int size) {
  extern __shared__ float tile[];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, slice = blockIdx.y;
  int span = size + 4, wide = size + 2;  // of a padded row, of an output row

  tile[t] = t;
  __syncthreads();
  Voxels index;
  wmma::load_matrix_sync(index, tile, 16);
  const float* from[4];
  for (int e = 0; e < 4; ++e) {
    int i = index.x[e];
    from[e] = tile + i / 16 * kPitch + i % 16 + warp / 2 * 64;
  }
  Sums sums[kM][4];
  #pragma unroll
  for (int m = 0; m < kM; ++m) {
    #pragma unroll
    for (int n = 0; n < 4; ++n) wmma::fill_fragment(sums[m][n], 0.0f);
  }
  int group = warp % 2 * kM;

  for (int a = max(0, slice - depth + 1); a < min(3, slice + 1); ++a) {
    const float4* mine = weights + (a * 9 * (kInputs / 8) * 2 * kM + group) * 32 + lane;
    float4 next[kM];
    #pragma unroll
    for (int m = 0; m < kM; ++m) next[m] = mine[m * 32];
    __syncthreads();
    for (int p = t; p < 128 + 2 * span + 2; p += 128) {
      int row = (blockIdx.x * 128 + p) / span - 2, column = (blockIdx.x * 128 + p) % span - 2;
      bool inside = row >= 0 && row < size && column >= 0 && column < size;
      const float* voxel = x + (((size_t)blockIdx.z * inputs * depth + slice - a) * size + row) * size + column;
      #pragma unroll 16
      for (int c = 0; c < kInputs; ++c) {
        float v = inside && c % kChannels < inputs ? voxel[c % kChannels * depth * size * size] : 0.0f;
        tile[c * kPitch + p] = c / kChannels == 1 ? low(v) : wmma::__float_to_tf32(v);
      }
    }
    __syncthreads();
    for (int tap = 0; tap < 9; ++tap) {
      int shift = tap / 3 * span + tap % 3;
      #pragma unroll
      for (int k = 0; k < kInputs / 8; ++k) {
        Weights weight[kM];
        Voxels voxel[4];
        mine += 2 * kM * 32;  // one step more is allocated than there are
        #pragma unroll
        for (int m = 0; m < kM; ++m) {
          weight[m].x[0] = next[m].x;
          weight[m].x[1] = next[m].y;
          weight[m].x[2] = next[m].z;
          weight[m].x[3] = next[m].w;
          next[m] = mine[m * 32];
        }
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          #pragma unroll
          for (int e = 0; e < 4; ++e) voxel[n].x[e] = from[e][k * 8 * kPitch + n * 16 + shift];
        }
        #pragma unroll
        for (int m = 0; m < kM; ++m) {
          #pragma unroll
          for (int n = 0; n < 4; ++n) wmma::mma_sync(sums[m][n], weight[m], voxel[n], sums[m][n]);
        }
      }
    }
  }

  __syncthreads();  // the tile of x is done with: 16 outputs of a warp at a time pass through its place
  float* staged = tile + warp * 16 * kStaged;
  int place[2];
  unsigned real[2];  // a bit for each of the 64 voxels that is one
  for (int h = 0; h < 2; ++h) {
    int q = blockIdx.x * 128 + warp / 2 * 64 + h * 32 + lane;
    bool inside = q / span < wide && q % span < wide;
    place[h] = inside ? q / span * wide + q % span : -1;
    real[h] = __ballot_sync(0xffffffffu, inside);
  }
  int plane = (depth + 2) * wide * wide, count = __popc(real[0]) + __popc(real[1]);
  int piece = (blockIdx.y * gridDim.x + blockIdx.x) * 2 + warp / 2;
  pieces += ((size_t)blockIdx.z * gridDim.x * gridDim.y * 2 + piece) * outputs;
  #pragma unroll
  for (int m = 0; m < kM; ++m) {
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      for (int e = 0; e < sums[m][n].num_elements; ++e) sums[m][n].x[e] = fmaxf(sums[m][n].x[e], 0.0f);
      wmma::store_matrix_sync(staged + n * 16, sums[m][n], kStaged, wmma::mem_row_major);
    }
    __syncwarp();
    int first = (group + m) * 16, last = min(16, outputs - first);
    float* target = out + ((size_t)blockIdx.z * outputs + first) * plane + slice * wide * wide;
    #pragma unroll 4
    for (int c = 0; c < last; ++c) {
      for (int h = 0; h < 2; ++h) {
        if (place[h] >= 0) target[place[h]] = staged[c * kStaged + h * 32 + lane];
      }
      target += plane;
    }
    // Two lanes have a channel of their own now, 32 voxels each.
    const float4* own = (const float4*)(staged + lane / 2 * kStaged + lane % 2 * 32);
    unsigned here = lane % 2 ? real[1] : real[0];
    float mean = 0.0f, squares = 0.0f;
    for (int i = 0; i < 8; ++i) {
      float4 v = own[i];
      mean += ((here >> 4 * i & 1 ? v.x : 0.0f) + (here >> 4 * i & 2 ? v.y : 0.0f)) +
              ((here >> 4 * i & 4 ? v.z : 0.0f) + (here >> 4 * i & 8 ? v.w : 0.0f));
    }
    mean = (mean + __shfl_xor_sync(0xffffffffu, mean, 1)) / max(1, count);
    for (int i = 0; i < 8; ++i) {
      float4 v = own[i];
      squares += ((here >> 4 * i & 1 ? square(v.x - mean) : 0.0f) + (here >> 4 * i & 2 ? square(v.y - mean) : 0.0f)) +
                 ((here >> 4 * i & 4 ? square(v.z - mean) : 0.0f) + (here >> 4 * i & 8 ? square(v.w - mean) : 0.0f));
    }
    squares += __shfl_xor_sync(0xffffffffu, squares, 1);
    if (lane % 2 == 0 && lane / 2 < last) pieces[first + lane / 2] = make_float2(mean, squares);
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
  int o = blockIdx.y % outputs;
  float2 known = statistics[blockIdx.y / (outputs / 8)];
  float factor = known.y * scale[o], mean = known.x, term = shift[o];
  float4* plane = out + (size_t)blockIdx.y * vectors;
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
merge = cp.RawKernel(source, "merge")
normalise = cp.RawKernel(source, "normalise")
module = cp.RawModule(code=source, name_expressions=("conv<64, 64, 4>", "conv<24, 8, 1>"))
conv_wide = module.get_function("conv<64, 64, 4>")
conv_small = module.get_function("conv<24, 8, 1>")


def forward(x, weight, scale, shift):
    batch, inputs, depth, size, _ = x.shape
    outputs = weight.shape[1]
    if inputs > 8:
        conv, steps, groups, shared = conv_wide, 8, 8, 64 * 216 * 4
    else:
        conv, steps, groups, shared = conv_small, 3, 2, 24 * 216 * 4
    wide = size + 2
    tiles = ((wide - 1) * (wide + 2) + wide + 127) // 128
    count = tiles * 2 * (depth + 2)
    plane = (depth + 2) * wide * wide
    weights = cp.empty((27 * steps + 1, groups, 32, 4), cp.float32)
    pieces = cp.empty((batch, count, outputs, 2), cp.float32)
    statistics = cp.empty((batch, 8, 2), cp.float32)
    out = cp.empty((batch, outputs, depth + 2, wide, wide), cp.float32)
    arrange((27 * steps, groups), (32,), (weight, weights, inputs, outputs, steps, 64 if inputs > 8 else 8))
    conv.max_dynamic_shared_size_bytes = shared
    args = (x, weights, out, pieces, inputs, outputs, depth, size)
    conv((tiles, depth + 2, batch), (128,), args, shared_mem=shared)
    args = (pieces, statistics, count, outputs // 8, tiles * 2, wide, outputs // 8 * plane)
    merge((8, batch), (512,), args)
    args = (out, statistics, scale, shift, outputs, plane // 4)
    normalise(((plane // 4 + 1023) // 1024, outputs * batch), (256,), args)
    return out
