"""Rows split over many blocks: moments of chunks, their merger, then the result.

There are few rows and they are long (16 rows of 4,194,304), so one block per row leaves most of a GPU idle. Blocks
take chunks of 8,192 elements with float4 loads: the chunk's mean, then squares about that mean from L1, so that no
precision is lost to a large common offset. One block per row merges the chunks' moments by Chan's formula; the last
kernel normalises, element-parallel. In a block sum one warp adds what the four wrote, so three warps wait at two
barriers and shuffle nothing.

Techniques: split rows over blocks, float4 loads, warp shuffles, merged moments
"""
import cupy as cp

source = r'''
__device__ float block_sum(float v, float* part) {
  int t = threadIdx.x;
  part[t] = v;
  __syncthreads();
  if (t < 32) {
    v = (part[t] + part[t + 32]) + (part[t + 64] + part[t + 96]);
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (t == 0) part[0] = v;
  }
  __syncthreads();
  return part[0];
}

extern "C" __global__ void moments(const float4* x, float* means, float* squares, int vectors, int chunks) {
  __shared__ float part[256];
  int first = blockIdx.x * 2048;
  int count = min(2048, vectors - first);
  const float4* chunk = x + (size_t)blockIdx.y * vectors + first;
  float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = threadIdx.x; i < count; i += 128) {
    float4 v = chunk[i];
    s.x += v.x;
    s.y += v.y;
    s.z += v.z;
    s.w += v.w;
  }
  float mean = block_sum((s.x + s.y) + (s.z + s.w), part) / (4 * count);
  s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = threadIdx.x; i < count; i += 128) {
    float4 v = chunk[i];
    s.x += (v.x - mean) * (v.x - mean);
    s.y += (v.y - mean) * (v.y - mean);
    s.z += (v.z - mean) * (v.z - mean);
    s.w += (v.w - mean) * (v.w - mean);
  }
  float square = block_sum((s.x + s.y) + (s.z + s.w), part + 128);
  if (threadIdx.x == 0) {
    means[blockIdx.y * chunks + blockIdx.x] = mean;
    squares[blockIdx.y * chunks + blockIdx.x] = square;
  }
}

extern "C" __global__ void merge(const float* means, const float* squares, float* stats, int vectors, int chunks) {
  __shared__ float part[256];
  const float* m = means + blockIdx.x * chunks;
  const float* q = squares + blockIdx.x * chunks;
  float size = 4.0f * vectors;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < chunks; i += 128) sum += m[i] * (4 * min(2048, vectors - i * 2048));
  float mean = block_sum(sum, part) / size;
  sum = 0.0f;
  for (int i = threadIdx.x; i < chunks; i += 128) {
    float d = m[i] - mean;
    sum += q[i] + d * d * (4 * min(2048, vectors - i * 2048));
  }
  float variance = block_sum(sum, part + 128) / size;
  if (threadIdx.x == 0) {
    stats[2 * blockIdx.x] = mean;
    stats[2 * blockIdx.x + 1] = rsqrtf(variance + 1e-5f);
  }
}

extern "C" __global__ void normalise(const float4* x, const float4* w, const float4* b, const float* stats, float4* out,
                                     int vectors) {
  float mean = stats[2 * blockIdx.y];
  float scale = stats[2 * blockIdx.y + 1];
  size_t row = (size_t)blockIdx.y * vectors;
  int end = min((int)(blockIdx.x + 1) * 1024, vectors);
  #pragma unroll 4
  for (int i = blockIdx.x * 1024 + threadIdx.x; i < end; i += 128) {
    float4 v = x[row + i];
    float4 g = w[i];
    float4 h = b[i];
    v.x = (v.x - mean) * scale * g.x + h.x;
    v.y = (v.y - mean) * scale * g.y + h.y;
    v.z = (v.z - mean) * scale * g.z + h.z;
    v.w = (v.w - mean) * scale * g.w + h.w;
    out[row + i] = v;
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
    moments((chunks, rows), (128,), (x, means, squares, vectors, chunks))
    merge((rows,), (128,), (means, squares, stats, vectors, chunks))
    normalise(((vectors + 1023) // 1024, rows), (128,), (x, ln_weight, ln_bias, stats, out, vectors))
    return out
