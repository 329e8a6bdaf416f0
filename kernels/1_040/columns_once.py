"""Chunks in registers for the moments; then columns, so that weight and bias are read once for all rows.

There are few rows and they are long (16 rows of 4,194,304), so rows are split over blocks. A block keeps its chunk of
8,192 elements in registers: its mean, then squares about that mean, from one read, so that no precision is lost to a
large common offset. One block per row merges the chunks' moments by Chan's formula. To normalise, a thread keeps four
columns' weight and bias in registers and goes through all rows, where a kernel by rows would read both once for every
row. It goes through the columns backwards, since the last ones read before are still in L2.

Techniques: split rows over blocks, register caching, merged moments, loop interchange, float4 loads
"""
import cupy as cp

source = r'''
__device__ float block_sum(float v, float* part) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 8];
  for (int d = 4; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void __launch_bounds__(256) moments(const float4* __restrict__ x, float* means, float* squares,
                                                          int vectors, int chunks) {
  __shared__ float part[16];
  int first = blockIdx.y * 2048;
  int count = min(2048, vectors - first);
  const float4* chunk = x + (size_t)blockIdx.x * vectors + first;
  float4 v[8];
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = threadIdx.x + 256 * k;
    v[k] = i < count ? chunk[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  float sum = 0.0f;
  #pragma unroll
  for (int k = 0; k < 8; ++k) sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
  float mean = block_sum(sum, part) / (4 * count);
  sum = 0.0f;
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    float a = v[k].x - mean, b = v[k].y - mean, c = v[k].z - mean, d = v[k].w - mean;
    if (threadIdx.x + 256 * k < count) sum += (a * a + b * b) + (c * c + d * d);
  }
  float square = block_sum(sum, part + 8);
  if (threadIdx.x == 0) {
    means[blockIdx.x * chunks + blockIdx.y] = mean;
    squares[blockIdx.x * chunks + blockIdx.y] = square;
  }
}

extern "C" __global__ void merge(const float* means, const float* squares, float2* stats, int vectors, int chunks) {
  __shared__ float part[16];
  const float* m = means + blockIdx.x * chunks;
  const float* q = squares + blockIdx.x * chunks;
  float size = 4.0f * vectors;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < chunks; i += 256) sum += m[i] * (4 * min(2048, vectors - i * 2048));
  float mean = block_sum(sum, part) / size;
  sum = 0.0f;
  for (int i = threadIdx.x; i < chunks; i += 256) {
    float d = m[i] - mean;
    sum += q[i] + d * d * (4 * min(2048, vectors - i * 2048));
  }
  float variance = block_sum(sum, part + 8) / size;
  if (threadIdx.x == 0) stats[blockIdx.x] = make_float2(mean, rsqrtf(variance + 1e-5f));
}

extern "C" __global__ void __launch_bounds__(256) normalise(const float4* __restrict__ x, const float4* __restrict__ w,
    const float4* __restrict__ b, const float2* __restrict__ stats, float4* __restrict__ out, int vectors, int rows) {
  int i = (gridDim.x - 1 - blockIdx.x) * 256 + threadIdx.x;
  if (i >= vectors) return;
  float4 g = w[i];
  float4 h = b[i];
  for (int first = 0; first < rows; first += 4) {
    // Four rows' loads before any store, so that they are under way together.
    float4 v[4];
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (first + k < rows) v[k] = __ldcs(x + (size_t)(first + k) * vectors + i);
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (first + k >= rows) break;
      float2 s = stats[first + k];
      v[k].x = (v[k].x - s.x) * s.y * g.x + h.x;
      v[k].y = (v[k].y - s.x) * s.y * g.y + h.y;
      v[k].z = (v[k].z - s.x) * s.y * g.z + h.z;
      v[k].w = (v[k].w - s.x) * s.y * g.w + h.w;
      __stcs(out + (size_t)(first + k) * vectors + i, v[k]);
    }
  }
}
'''
moments = cp.RawKernel(source, "moments")
merge = cp.RawKernel(source, "merge")
normalise = cp.RawKernel(source, "normalise")


def forward(x, ln_weight, ln_bias):
    rows = x.shape[0]
    vectors = ln_weight.size // 4
    chunks = (vectors + 2047) // 2048
    means = cp.empty((rows, chunks), cp.float32)
    squares = cp.empty((rows, chunks), cp.float32)
    stats = cp.empty((rows, 2), cp.float32)
    out = cp.empty(x.shape, cp.float32)
    moments((rows, chunks), (256,), (x, means, squares, vectors, chunks))
    merge((rows,), (256,), (means, squares, stats, vectors, chunks))
    normalise(((vectors + 255) // 256,), (256,), (x, ln_weight, ln_bias, stats, out, vectors, rows))
    return out
