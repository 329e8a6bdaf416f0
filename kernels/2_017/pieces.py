"""A TF32 tensor-core convolution that leaves each plane's mean and variance in parts, then one pass that normalises.

The reference convolves, reads its output for the statistics and again for the result. Here every warp sums up its
piece of each channel while it still lies in shared memory (count, mean, sum of squares about that mean), so that one
read and one write follow the convolution; the second kernel merges the pieces of its plane by Chan's formula and
normalises in place. The convolution's bias shifts a plane as a whole and the norm takes it out again, so it is never
added. The convolution is a product of the weights (output channels by 9 taps x input channels) with the shifted
pixels, without im2col: a block keeps a tile of x, all channels and the halo, in shared memory, rounded to TF32 once,
and a tap is an offset into it. Each of four warps holds a 64 x 64 tile of sums, so that every fragment feeds four
products. Nothing is synchronised inside the loop: the weights, arranged once in the order in which lanes hold
fragments, come from L1 and L2 as one coalesced float4 per lane and fragment, those of the next step under way while
this one's are multiplied. Pixel fragments are filled by hand, because shifts by a tap break the alignment that
load_matrix_sync wants; which element a lane holds is asked of the hardware, by loading a table of indices. Channels
lie 8 modulo 16 words apart, so that a fragment meets no bank twice. Up to 64 input channels, padded to 8 or 64.

Techniques: tensor cores, implicit matrix product, statistics in the epilogue, Chan's formula, arranged weights, algebra
"""
import cupy as cp

source = r'''
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Pixels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kSpan = 34;    // columns of x under 32 columns of outputs
const int kStaged = 68;  // pitch of a channel's 64 sums on their way out: 4 modulo 32, so that 8 lanes read 8 float4

// [tap][group of 8 inputs][group of 16 outputs][lane]: the four elements of the fragment that a lane holds.
extern "C" __global__ void arrange(const float* w, float4* arranged, int inputs, int outputs, int depth) {
  __shared__ __align__(32) float table[128];
  for (int i = threadIdx.x; i < 128; i += 32) table[i] = i;
  __syncwarp();
  Weights index;
  wmma::load_matrix_sync(index, table, 8);
  float v[4];
  for (int e = 0; e < 4; ++e) {
    int i = index.x[e], o = blockIdx.y * 16 + i / 8, c = blockIdx.x % depth * 8 + i % 8;
    bool real = o < outputs && c < inputs;
    v[e] = real ? wmma::__float_to_tf32(w[(o * inputs + c) * 9 + blockIdx.x / depth]) : 0.0f;
  }
  arranged[(blockIdx.x * gridDim.y + blockIdx.y) * 32 + threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
}

__device__ float square(float v) { return v * v; }

// kInputs channels, padded; 4 warps, kAbove of them above each other along the outputs; a warp has kM x 16 outputs of
// 2 rows x 32 columns.
template <int kInputs, int kAbove, int kM>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const float4* __restrict__ weights, float* __restrict__ out,
     float2* __restrict__ pieces, int inputs, int outputs, int height, int width, int tiles) {
  constexpr int kRows = 8 / kAbove, kPixels = (kRows + 2) * kSpan, kPitch = (kPixels + 7) / 16 * 16 + 8;
  extern __shared__ float tile[];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int column = blockIdx.x % tiles * 32, row = blockIdx.x / tiles * kRows;

  tile[t] = t;
  __syncthreads();
  Pixels index;
  wmma::load_matrix_sync(index, tile, 16);
  const float* from[4];
  for (int e = 0; e < 4; ++e) {
    int i = index.x[e];
    from[e] = tile + i / 16 * kPitch + i % 16 + warp / kAbove * 2 * kSpan;
  }
  float* centres = tile + kInputs * kPitch;
  if (t < kInputs) {
    const float* channel = x + (size_t)(blockIdx.z * inputs + min(t, inputs - 1)) * height * width;
    float a = channel[height / 4 * width + width / 4], b = channel[height / 2 * width + width / 2];
    float c = channel[height * 3 / 4 * width + width * 3 / 4];
    centres[t] = fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
  }
  __syncthreads();
  for (int p = t; p < kPixels; p += 128) {
    int y = row + p / kSpan, z = column + p % kSpan;
    bool inside = y < height && z < width;
    const float* pixel = x + ((size_t)blockIdx.z * inputs * height + y) * width + z;
    #pragma unroll 16
    for (int c = 0; c < kInputs; ++c) {
      float v = inside && c < inputs ? pixel[c * height * width] - centres[c] : 0.0f;
      tile[c * kPitch + p] = wmma::__float_to_tf32(v);
    }
  }
  Sums sums[kM][4];
  #pragma unroll
  for (int m = 0; m < kM; ++m) {
    #pragma unroll
    for (int n = 0; n < 4; ++n) wmma::fill_fragment(sums[m][n], 0.0f);
  }
  int pitch = gridDim.y * kAbove * kM * 32;  // of a step's weights
  int group = (blockIdx.y * kAbove + warp % kAbove) * kM;
  const float4* mine = weights + group * 32 + lane;
  float4 next[kM];
  #pragma unroll
  for (int m = 0; m < kM; ++m) next[m] = mine[m * 32];
  __syncthreads();

  for (int tap = 0; tap < 9; ++tap) {
    int shift = tap / 3 * kSpan + tap % 3;
    #pragma unroll
    for (int k = 0; k < kInputs / 8; ++k) {
      Weights weight[kM];
      Pixels pixel[4];
      mine += pitch;  // one step more is allocated than there are
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
        for (int e = 0; e < 4; ++e) pixel[n].x[e] = from[e][k * 8 * kPitch + n / 2 * kSpan + n % 2 * 16 + shift];
      }
      #pragma unroll
      for (int m = 0; m < kM; ++m) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) wmma::mma_sync(sums[m][n], weight[m], pixel[n], sums[m][n]);
      }
    }
  }

  __syncthreads();  // the tile of x is done with: 32 outputs of a warp at a time pass through its place
  float* staged = tile + warp * 32 * kStaged;
  row += warp / kAbove * 2;
  int high = height - 2, wide = width - 2;
  int columns = min(32, wide - column), rows = max(0, min(2, high - row));
  int piece = blockIdx.x * (4 / kAbove) + warp / kAbove;
  pieces += ((size_t)blockIdx.z * gridDim.x * (4 / kAbove) + piece) * outputs;
  #pragma unroll
  for (int m = 0; m < kM; m += 2) {
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      wmma::store_matrix_sync(staged + n / 4 * 16 * kStaged + n % 4 * 16, sums[m + n / 4][n % 4], kStaged,
                              wmma::mem_row_major);
    }
    __syncwarp();
    int first = (group + m) * 16, last = lane < columns ? min(32, outputs - first) : 0;
    float* target = out + (((size_t)blockIdx.z * outputs + first) * high + row) * wide + column + lane;
    #pragma unroll 4
    for (int c = 0; c < last; ++c) {
      if (rows > 0) target[0] = staged[c * kStaged + lane];
      if (rows > 1) target[wide] = staged[c * kStaged + 32 + lane];
      target += (size_t)high * wide;
    }
    if (first + lane < outputs) {  // a lane has a channel of its own now
      const float4* own = (const float4*)(staged + lane * kStaged);
      float mean = 0.0f, squares = 0.0f;
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < 8; ++i) {
          float4 v = own[r * 8 + i];
          mean += (4 * i < columns ? v.x : 0.0f) + (4 * i + 1 < columns ? v.y : 0.0f) +
                  ((4 * i + 2 < columns ? v.z : 0.0f) + (4 * i + 3 < columns ? v.w : 0.0f));
        }
      }
      mean /= max(1, rows * columns);
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < 8; ++i) {
          float4 v = own[r * 8 + i];
          squares += (4 * i < columns ? square(v.x - mean) : 0.0f) + (4 * i + 1 < columns ? square(v.y - mean) : 0.0f) +
                     ((4 * i + 2 < columns ? square(v.z - mean) : 0.0f) +
                      (4 * i + 3 < columns ? square(v.w - mean) : 0.0f));
        }
      }
      pieces[first + lane] = make_float2(mean, squares);
    }
    __syncwarp();
  }
}

__device__ float block_sum(float sum) {
  __shared__ float part[8];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; ++w) sum += part[w];
  return sum;
}

// One block per plane, in `count` pieces of 2 rows x 32 columns; a block of `conv` had `rows` rows, in `tiles` columns.
extern "C" __global__ void __launch_bounds__(256)
normalise(float* __restrict__ out, const float2* __restrict__ pieces, int high, int wide, int tiles, int count,
          int rows) {
  float* plane = out + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * high * wide;
  pieces += (size_t)blockIdx.y * count * gridDim.x + blockIdx.x;
  int size = high * wide, per_block = rows / 2;
  float mean = 0.0f, squares = 0.0f;
  for (int i = threadIdx.x; i < count; i += 256) {
    int row = i / per_block / tiles * rows + i % per_block * 2, column = i / per_block % tiles * 32;
    float area = max(0, min(2, high - row)) * min(32, wide - column);
    mean += area * pieces[(size_t)i * gridDim.x].x;
  }
  mean = block_sum(mean) / size;
  for (int i = threadIdx.x; i < count; i += 256) {
    int row = i / per_block / tiles * rows + i % per_block * 2, column = i / per_block % tiles * 32;
    float area = max(0, min(2, high - row)) * min(32, wide - column);
    float2 piece = pieces[(size_t)i * gridDim.x];
    squares += piece.y + area * square(piece.x - mean);
  }
  float scale = 0.5f * rsqrtf(block_sum(squares) / size + 1e-5f);
  if (size % 4 == 0) {
    float4* vectors = (float4*)plane;
    #pragma unroll 4
    for (int i = threadIdx.x; i < size / 4; i += 256) {
      float4 v = vectors[i];
      vectors[i] = make_float4((v.x - mean) * scale, (v.y - mean) * scale, (v.z - mean) * scale, (v.w - mean) * scale);
    }
  } else {
    for (int i = threadIdx.x; i < size; i += 256) plane[i] = (plane[i] - mean) * scale;
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
normalise = cp.RawKernel(source, "normalise")
module = cp.RawModule(code=source, name_expressions=("conv<64, 2, 4>", "conv<8, 1, 2>"))
conv_wide = module.get_function("conv<64, 2, 4>")
conv_small = module.get_function("conv<8, 1, 2>")


def forward(x, weight, bias):
    batch, inputs, height, width = x.shape
    outputs = weight.shape[0]
    if inputs > 8:
        conv, depth, rows, block, shared = conv_wide, 8, 4, 128, 64 * 217 * 4
    else:
        conv, depth, rows, block, shared = conv_small, 1, 8, 32, 128 * 72 * 4
    blocks = (outputs + block - 1) // block
    groups = blocks * block // 16
    high, wide = height - 2, width - 2
    tiles = (wide + 31) // 32
    grid = (tiles * ((high + rows - 1) // rows), blocks, batch)
    count = grid[0] * rows // 2
    weights = cp.empty((9 * depth + 1, groups, 32, 4), cp.float32)
    pieces = cp.empty((batch, count, outputs, 2), cp.float32)
    out = cp.empty((batch, outputs, high, wide), cp.float32)
    arrange((9 * depth, groups), (32,), (weight, weights, inputs, outputs, depth))
    conv.max_dynamic_shared_size_bytes = shared
    args = (x, weights, out, pieces, inputs, outputs, height, width, tiles)
    conv(grid, (128,), args, shared_mem=shared)
    normalise((outputs, batch), (256,), (out, pieces, high, wide, tiles, count, rows))
    return out
