"""One launch in which a block reads a chunk for the statistics and normalises an earlier one, which is still in L2.

A group of planes must be read for its mean and variance and again to be normalised. One block per group has hundreds of
MB under way, more than L2 holds, so both reads come from memory. Here a block takes a chunk of 2,048 numbers, leaves
the chunk's moments, and normalises the chunk `lag` blocks before its own. The warp that hands in a group's last moments
merges them by Chan's formula and publishes mean and scale as one 64-bit word. The lag covers the blocks that run at a
time, and is some 21 MB: memory sees one read and one write. Nobody waits: a chunk whose group is not ready goes on a
list, and a second launch does what is listed, so the result does not depend on the order of blocks. The squares are
about the mean of each warp's numbers, which stay in registers, so a large common offset costs no precision. Planes have
an even number of pixels.

Techniques: reuse through L2, statistics and result in one launch, work list, merged moments, warp shuffles
"""
import cupy as cp

source = r'''
const int CHUNK = 1024;  // float2 per block
const int STEPS = CHUNK / 256;

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// Mean, squares about it and count (x, y, z) of two sets together.
__device__ float4 joined(float4 a, float4 b) {
  float count = a.z + b.z;
  float share = count > 0.0f ? __fdividef(b.z, count) : 0.0f;
  float d = b.x - a.x;
  return make_float4(a.x + d * share, a.y + b.y + d * d * a.z * share, count, 0.0f);
}

__device__ float4 warp_joined(float4 a) {
  for (int d = 16; d > 0; d /= 2) {
    float x = __shfl_xor_sync(0xffffffffu, a.x, d);
    float y = __shfl_xor_sync(0xffffffffu, a.y, d);
    float z = __shfl_xor_sync(0xffffffffu, a.z, d);
    a = joined(a, make_float4(x, y, z, 0.0f));
  }
  return a;
}

// What a thread has of a chunk; a warp's numbers lie together.
__device__ int first_of(int chunk, int chunks) {
  return chunk % chunks * CHUNK + threadIdx.x / 32 * (32 * STEPS) + threadIdx.x % 32;
}

__device__ void load(float2* v, const float2* plane, int first, int pairs) {
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    v[k] = first + 32 * k < pairs ? plane[first + 32 * k] : make_float2(0.0f, 0.0f);
  }
}

__device__ void store(const float2* v, float2* plane, int first, int pairs, unsigned long long stats, float w,
                      float h) {
  float mean = __uint_as_float((unsigned)stats);
  float scale = __uint_as_float((unsigned)(stats >> 32)) * w;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    if (first + 32 * k < pairs) {
      __stcs(plane + first + 32 * k, make_float2((v[k].x - mean) * scale + h, (v[k].y - mean) * scale + h));
    }
  }
}

__device__ float4 warp_moments(const float2* v, int first, int pairs) {
  int count = 2 * max(0, min(32 * STEPS, pairs - first + (int)threadIdx.x % 32));
  float sum = 0.0f;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) sum += v[k].x + v[k].y;
  float mean = __fdividef(warp_sum(sum), max(count, 1));
  float squares = 0.0f;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    float a = v[k].x - mean;
    float b = v[k].y - mean;
    if (first + 32 * k < pairs) squares += a * a + b * b;
  }
  return make_float4(mean, warp_sum(squares), count, 0.0f);
}

extern "C" __global__ void __launch_bounds__(256, 6)
pipeline(const float2* x, const float* weight, const float* bias, float2* out, float4* parts, unsigned* arrived,
         unsigned long long* stats, int* missed, int pairs, int chunks, int channels, int depth, int total, int lag) {
  __shared__ float4 part[8];
  __shared__ unsigned long long found;
  int t = threadIdx.x;
  int b = blockIdx.x;
  int old = b - lag;
  int plane = b / chunks;
  int first = first_of(b, chunks);
  float2 v[STEPS];
  if (b < total) load(v, x + (size_t)plane * pairs, first, pairs);
  int old_plane = max(old, 0) / chunks;
  int old_first = first_of(max(old, 0), chunks);
  float w = weight[old_plane % channels];
  float h = bias[old_plane % channels];
  float2 u[STEPS];
  if (old >= 0) load(u, x + (size_t)old_plane * pairs, old_first, pairs);
  if (b < total) {
    float4 m = warp_moments(v, first, pairs);
    if (t % 32 == 0) part[t / 32] = m;
  }
  if (t == 32) found = old >= 0 ? *(volatile unsigned long long*)(stats + old_plane / depth) : 0;
  __syncthreads();
  if (t < 32 && b < total) {
    float4 m = warp_joined(t < 8 ? part[t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    int group = plane / depth;
    int members = chunks * depth;
    unsigned before = 0;
    if (t == 0) {
      parts[b] = m;
      __threadfence();
      before = atomicAdd(arrived + group, 1u);
    }
    if (__shfl_sync(0xffffffffu, before, 0) == members - 1) {
      __threadfence();
      m = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      for (int c = t; c < members; c += 32) m = joined(m, __ldcg(parts + (size_t)group * members + c));
      m = warp_joined(m);
      float scale = rsqrtf(m.y / m.z + 1e-5f);
      unsigned long long word = (unsigned long long)__float_as_uint(scale) << 32 | __float_as_uint(m.x);
      if (t == 0) *(volatile unsigned long long*)(stats + group) = word;
    }
  }
  if (old < 0) return;
  if (found != 0) {
    store(u, out + (size_t)old_plane * pairs, old_first, pairs, found, w, h);
  } else if (t == 0) {
    missed[1 + atomicAdd(missed, 1)] = old;
  }
}

extern "C" __global__ void leftovers(const float2* x, const float* weight, const float* bias, float2* out,
                                     const unsigned long long* stats, const int* missed, int pairs, int chunks,
                                     int channels, int depth) {
  for (int n = blockIdx.x; n < missed[0]; n += gridDim.x) {
    int chunk = missed[1 + n];
    int plane = chunk / chunks;
    int first = first_of(chunk, chunks);
    float2 v[STEPS];
    load(v, x + (size_t)plane * pairs, first, pairs);
    int c = plane % channels;
    store(v, out + (size_t)plane * pairs, first, pairs, stats[plane / depth], weight[c], bias[c]);
  }
}
'''
pipeline = cp.RawKernel(source, "pipeline")
leftovers = cp.RawKernel(source, "leftovers")


def forward(x, gn_weight, gn_bias):
    batch, channels, height, width = x.shape
    depth = channels // 8  # planes of a group
    planes = batch * channels
    pairs = height * width // 2
    chunks = (pairs + 1023) // 1024
    total = planes * chunks
    lag = min(total, 1536 + depth * chunks)
    parts = cp.empty((total, 4), cp.float32)
    arrived = cp.zeros((batch * 8,), cp.uint32)
    stats = cp.zeros((batch * 8,), cp.uint64)
    missed = cp.zeros((total + 1,), cp.int32)
    out = cp.empty(x.shape, cp.float32)
    affine = (gn_weight, gn_bias)
    sizes = (pairs, chunks, channels, depth)
    pipeline((total + lag,), (256,), (x, *affine, out, parts, arrived, stats, missed, *sizes, total, lag))
    leftovers((min(total, 1056),), (256,), (x, *affine, out, stats, missed, *sizes))
    return out
