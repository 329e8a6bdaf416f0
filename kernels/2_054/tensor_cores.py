"""One TF32 tensor-core kernel for convolution, factor, leaky relu and gelu.

The reference convolves and then passes over its output for the factor and the activations, a gigabyte read and written each time; here all happens before the only store. The convolution is a product of the weights (output channels by 9 taps x input channels) with the shifted pixels, without im2col: a block keeps a tile of x, all channels and the halo, in shared memory, rounded to TF32 once, and a tap is an offset into it. Each of four warps holds a 64 x 64 tile of sums, so that every fragment feeds four products. Nothing is synchronised inside the loop: the weights, arranged once in the order in which lanes hold fragments, come from L1 as one coalesced float4 per lane and fragment, those of the next step under way while this one's are multiplied. Pixel fragments are filled by hand, because shifts by a tap break the alignment that load_matrix_sync wants; which element a lane holds is asked of the hardware, by loading a table of indices. Channels lie 8 modulo 16 words apart, so that a fragment meets no bank twice. Up to 64 input channels, padded to 8 or 64.

Techniques: tensor cores, implicit matrix product, fusion, weights in fragment order, register double buffering
"""
import cupy as cp

source = r'''
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Weights;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> Pixels;
typedef wmma::fragment<wmma::accumulator, 16, 16, 8, float> Sums;

const int kSpan = 34;    // columns of x under 32 columns of outputs
const int kStaged = 72;  // pitch of a channel's 64 sums on their way out: 8 modulo 32, against bank conflicts

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

__device__ float activate(float v) {
  v = v > 0.0f ? v : 0.01f * v;
  return 0.5f * v * (1.0f + erff(v * 0.70710678f));
}

// kInputs channels, padded; 4 warps, kAbove of them above each other along the outputs; a warp has kM x 16 outputs of
// 2 rows x 32 columns.
template <int kInputs, int kAbove, int kM>
__global__ void __launch_bounds__(128, 2)
conv(const float* __restrict__ x, const float* __restrict__ factors, const float4* __restrict__ weights,
     const float* __restrict__ biases, float* __restrict__ out, int inputs, int outputs, int height, int width,
     int tiles) {
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
  __syncthreads();
  for (int p = t; p < kPixels; p += 128) {
    int y = row + p / kSpan, z = column + p % kSpan;
    bool inside = y < height && z < width;
    const float* pixel = x + ((size_t)blockIdx.z * inputs * height + y) * width + z;
    #pragma unroll 16
    for (int c = 0; c < kInputs; ++c) {
      tile[c * kPitch + p] = inside && c < inputs ? wmma::__float_to_tf32(pixel[c * height * width]) : 0.0f;
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
  column += lane;
  int high = height - 2, wide = width - 2;
  #pragma unroll
  for (int m = 0; m < kM; m += 2) {
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      wmma::store_matrix_sync(staged + n / 4 * 16 * kStaged + n % 4 * 16, sums[m + n / 4][n % 4], kStaged,
                              wmma::mem_row_major);
    }
    __syncwarp();
    int first = (group + m) * 16, last = column < wide ? min(32, outputs - first) : 0;
    float* target = out + (((size_t)blockIdx.z * outputs + first) * high + row) * wide + column;
    #pragma unroll 4
    for (int c = 0; c < last; ++c) {
      float bias = biases[first + c], factor = factors[first + c];
      if (row < high) target[0] = activate((staged[c * kStaged + lane] + bias) * factor);
      if (row + 1 < high) target[wide] = activate((staged[c * kStaged + 32 + lane] + bias) * factor);
      target += (size_t)high * wide;
    }
    __syncwarp();
  }
}
'''
arrange = cp.RawKernel(source, "arrange")
module = cp.RawModule(code=source, name_expressions=("conv<64, 1, 4>", "conv<8, 1, 2>"))
conv_wide = module.get_function("conv<64, 1, 4>")
conv_small = module.get_function("conv<8, 1, 2>")


def forward(x, factor, weight, bias):
    batch, inputs, height, width = x.shape
    outputs = weight.shape[0]
    if inputs > 8:
        conv, depth, rows, block, shared = conv_wide, 8, 8, 64, 64 * 344 * 4
    else:
        conv, depth, rows, block, shared = conv_small, 1, 8, 32, 128 * 72 * 4
    blocks = (outputs + block - 1) // block
    groups = blocks * block // 16
    weights = cp.empty((9 * depth + 1, groups, 32, 4), cp.float32)
    out = cp.empty((batch, outputs, height - 2, width - 2), cp.float32)
    arrange((9 * depth, groups), (32,), (weight, weights, inputs, outputs, depth))
    tiles = (width + 29) // 32
    grid = (tiles * ((height - 3 + rows) // rows), blocks, batch)
    conv.max_dynamic_shared_size_bytes = shared
    args = (x, factor, weights, bias, out, inputs, outputs, height, width, tiles)
    conv(grid, (128,), args, shared_mem=shared)
    return out
