"""The network in two kernels: both convolutions with their pooling, then the three linear layers.

The reference launches dozens of kernels and sends every intermediate through memory. Here four images at a time stay
in shared memory from pixels to the 400 features. A thread computes one pooled output, four sums of the convolution,
for six (first layer) or four (second) output channels: rows of x slide through registers, and one float4 of weights,
the same for most of the warp, serves sixteen multiply-adds, so arithmetic sets the pace. In the linear layers a warp
takes four images through all three layers without a block-wide barrier, a lane four neighbouring outputs of each
image; weights arrive through L1 as coalesced float4. A first small kernel arranges all weights with outputs side by
side. Relu comes after the maximum, which changes nothing. All arithmetic is float32.

Techniques: fusion, register tiling, float4 loads, arranged weights, warp per row
"""
import cupy as cp

source = r'''
const int kSecond = 200, kLinear1 = 2600, kLinear2 = 53800, kLinear3 = 69160, kWeights = 71848;

// Outputs side by side and padded: [25][8], [150][16], [400][128], [120][128], [84][32].
extern "C" __global__ void arrange(const float* w1, const float* w2, const float* w3, const float* w4, const float* w5,
                                   float* arranged, int classes) {
  int i = blockIdx.x * 256 + threadIdx.x;
  const float* from = w1;
  int inputs = 25, padded = 8, outputs = 6, place = i;
  if (i >= kLinear3) from = w5, inputs = 84, padded = 32, outputs = classes, place -= kLinear3;
  else if (i >= kLinear2) from = w4, inputs = 120, padded = 128, outputs = 84, place -= kLinear2;
  else if (i >= kLinear1) from = w3, inputs = 400, padded = 128, outputs = 120, place -= kLinear1;
  else if (i >= kSecond) from = w2, inputs = 150, padded = 16, outputs = 16, place -= kSecond;
  int o = place % padded;
  if (i < kWeights) arranged[i] = o < outputs ? from[o * inputs + place / padded] : 0.0f;
}

__device__ void load_row(float row[6], const float* from) {
  for (int k = 0; k < 6; k += 2) {
    float2 v = *(const float2*)(from + k);
    row[k] = v.x;
    row[k + 1] = v.y;
  }
}

__device__ void add_window(float sum[4], float w, const float* upper, const float* lower) {
  sum[0] += w * upper[0];
  sum[1] += w * upper[1];
  sum[2] += w * lower[0];
  sum[3] += w * lower[1];
}

__device__ float pool(const float sum[4], float bias) {
  return fmaxf(fmaxf(fmaxf(sum[0], sum[1]), fmaxf(sum[2], sum[3])) + bias, 0.0f);
}

extern "C" __global__ void __launch_bounds__(256, 3)
extract(const float4* __restrict__ x, const float4* __restrict__ weights, const float* __restrict__ bias1,
        const float* __restrict__ bias2, float* __restrict__ features, int images) {
  __shared__ float4 pixels[1024], w1[50], w2[600];
  __shared__ __align__(16) float pooled[4 * 1176];
  int t = threadIdx.x, first = blockIdx.x * 4, count = min(4, images - first);
  for (int i = t; i < 650; i += 256) (i < 50 ? w1 : w2 - 50)[i] = weights[i];
  for (int i = t; i < count * 256; i += 256) pixels[i] = x[first * 256 + i];
  __syncthreads();
  for (int task = t; task < count * 196; task += 256) {
    int image = task / 196, p = task % 196;
    const float* corner = (const float*)pixels + image * 1024 + p / 14 * 64 + p % 14 * 2;
    float sum[6][4] = {}, upper[6], lower[6];
    load_row(lower, corner);
    #pragma unroll 1
    for (int r = 0; r < 5; ++r) {
      for (int k = 0; k < 6; ++k) upper[k] = lower[k];
      load_row(lower, corner + (r + 1) * 32);
      #pragma unroll
      for (int s = 0; s < 5; ++s) {
        float4 a = w1[(r * 5 + s) * 2], b = w1[(r * 5 + s) * 2 + 1];
        add_window(sum[0], a.x, upper + s, lower + s);
        add_window(sum[1], a.y, upper + s, lower + s);
        add_window(sum[2], a.z, upper + s, lower + s);
        add_window(sum[3], a.w, upper + s, lower + s);
        add_window(sum[4], b.x, upper + s, lower + s);
        add_window(sum[5], b.y, upper + s, lower + s);
      }
    }
    for (int c = 0; c < 6; ++c) pooled[image * 1176 + c * 196 + p] = pool(sum[c], bias1[c]);
  }
  __syncthreads();
  for (int task = t; task < count * 100; task += 256) {
    int image = task / 100, group = task % 100 / 25, p = task % 25;
    const float* corner = pooled + image * 1176 + p / 5 * 28 + p % 5 * 2;
    const float4* w = w2 + group;
    float sum[4][4] = {}, upper[6], lower[6];
    #pragma unroll 1
    for (int c = 0; c < 6; ++c) {
      load_row(lower, corner + c * 196);
      #pragma unroll
      for (int r = 0; r < 5; ++r) {
        for (int k = 0; k < 6; ++k) upper[k] = lower[k];
        load_row(lower, corner + c * 196 + (r + 1) * 14);
        #pragma unroll
        for (int s = 0; s < 5; ++s) {
          float4 a = w[(c * 25 + r * 5 + s) * 4];
          add_window(sum[0], a.x, upper + s, lower + s);
          add_window(sum[1], a.y, upper + s, lower + s);
          add_window(sum[2], a.z, upper + s, lower + s);
          add_window(sum[3], a.w, upper + s, lower + s);
        }
      }
    }
    float* to = features + (first + image) * 400 + group * 100 + p;
    for (int c = 0; c < 4; ++c) to[c * 25] = pool(sum[c], bias2[group * 4 + c]);
  }
}

__device__ void add(float4& sum, float s, const float4& v) {
  sum.x += s * v.x;
  sum.y += s * v.y;
  sum.z += s * v.z;
  sum.w += s * v.w;
}

// Four images' rows of `in` times the weights, and relu: four neighbouring outputs a lane.
template <int kInputs, int kOutputs>
__device__ void linear(const float* in, const float4* __restrict__ w, const float* bias, float* out) {
  int lane = threadIdx.x % 32;
  float4 sum[4] = {};
  w += lane;
  #pragma unroll 2
  for (int k = 0; k < kInputs; k += 4) {
    float4 v[4];
    for (int j = 0; j < 4; ++j) v[j] = w[(k + j) * 32];
    for (int i = 0; i < 4; ++i) {
      float4 s = *(const float4*)(in + i * kInputs + k);
      add(sum[i], s.x, v[0]);
      add(sum[i], s.y, v[1]);
      add(sum[i], s.z, v[2]);
      add(sum[i], s.w, v[3]);
    }
  }
  if (4 * lane < kOutputs) {
    float4 b = make_float4(bias[4 * lane], bias[4 * lane + 1], bias[4 * lane + 2], bias[4 * lane + 3]);
    for (int i = 0; i < 4; ++i) {
      float4 v = make_float4(fmaxf(sum[i].x + b.x, 0.0f), fmaxf(sum[i].y + b.y, 0.0f), fmaxf(sum[i].z + b.z, 0.0f),
                             fmaxf(sum[i].w + b.w, 0.0f));
      *(float4*)(out + i * kOutputs + 4 * lane) = v;
    }
  }
  __syncwarp();
}

extern "C" __global__ void __launch_bounds__(128)
classify(const float4* __restrict__ features, const float* __restrict__ weights, const float* __restrict__ bias1,
         const float* __restrict__ bias2, const float* __restrict__ bias3, float* __restrict__ out, int images,
         int classes) {
  __shared__ float4 shared[4][604];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * 16 + warp * 4;
  float4* mine = shared[warp];
  int count = min(4, images - first);
  for (int i = lane; i < 400; i += 32) {
    mine[i] = i < count * 100 ? features[first * 100 + i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  __syncwarp();
  float *in = (float*)mine, *hidden1 = (float*)(mine + 400), *hidden2 = (float*)(mine + 520);
  linear<400, 120>(in, (const float4*)(weights + kLinear1), bias1, hidden1);
  linear<120, 84>(hidden1, (const float4*)(weights + kLinear2), bias2, hidden2);
  if (lane >= classes) return;
  float sum[4] = {};
  #pragma unroll 4
  for (int k = 0; k < 84; ++k) {
    float w = weights[kLinear3 + k * 32 + lane];
    for (int i = 0; i < 4; ++i) sum[i] += hidden2[i * 84 + k] * w;
  }
  for (int i = 0; i < count; ++i) out[(first + i) * classes + lane] = sum[i] + bias3[lane];
}
'''
arrange = cp.RawKernel(source, "arrange")
extract = cp.RawKernel(source, "extract")
classify = cp.RawKernel(source, "classify")


def forward(x, w1, b1, w2, b2, w3, b3, w4, b4, w5, b5):
    images, classes = x.shape[0], w5.shape[0]
    weights = cp.empty((71848,), cp.float32)
    features = cp.empty((images, 400), cp.float32)
    out = cp.empty((images, classes), cp.float32)
    arrange(((weights.size + 255) // 256,), (256,), (w1, w2, w3, w4, w5, weights, classes))
    extract(((images + 3) // 4,), (256,), (x, weights, b1, b2, features, images))
    classify(((images + 15) // 16,), (128,), (features, weights, b3, b4, b5, out, images, classes))
    return out
