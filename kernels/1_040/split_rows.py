"""Rows split over many blocks: moments of chunks, their merger, then the result.

There are few rows and they are long (16 rows of 4,194,304), so one block per row leaves most of a GPU idle. Blocks
take chunks of 8,192 elements with float4 loads: the chunk's mean, then squares about that mean from L1, so that no precision is
lost to a large common offset. One block per row merges the chunks' moments by Chan's formula; the last kernel normalises,
element-parallel. Each block sum costs five shuffles and one barrier.

Techniques: split rows over blocks, float4 loads, warp shuffles, merged moments
"""
import cupy as cp

source = r'''
__device__ float block_sum(float sum, float* part) {
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  return (part[0] + part[1]) + (part[2] + part[3]);
}

extern "C" __global__ void moments(const float4* x, float* means, float* squares, int vectors, int chunks) {
  __shared__ float part[8];
  int first = blockIdx.x * 2048;
  int count = min(2048, vectors - first);
  const float4* chunk = x + (size_t)blockIdx.y * vectors + first;
  float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = threadIdx.x; i < count; i += 128) {
    float4 v = chunk[i];
    s = make_float4(s.x + v.x, s.y + v.y, s.z + v.z, s.w + v.w);
  }
  float mean = block_sum((s.x + s.y) + (s.z + s.w), part) / (4 * count);
  s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = threadIdx.x; i < count; i += 128) {
    float4 v = chunk[i];
    float4 d = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    s = make_float4(s.x + d.x * d.x, s.y + d.y * d.y, s.z + d.z * d.z, s.w + d.w * d.w);
  }
  float square = block_sum((s.x + s.y) + (s.z + s.w), part + 4);
  if (threadIdx.x == 0) {
    means[blockIdx.y * chunks + blockIdx.x] = mean;
    squares[blockIdx.y * chunks + blockIdx.x] = square;
  }
}

extern "C" __global__ void merge(const float* means, const float* squares, float* stats, int vectors, int chunks) {
  __shared__ float part[8];
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
  float variance = block_sum(sum, part + 4) / size;
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
    out[row + i] = make_float4((v.x - mean) * scale * g.x + h.x, (v.y - mean) * scale * g.y + h.y,
                               (v.z - mean) * scale * g.z + h.z, (v.w - mean) * scale * g.w + h.w);
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
