"""One launch in which a block reads a chunk for the statistics and normalises an earlier one, which is still in L2.

A plane must be read for its mean and variance and again to be normalised. One block per plane has hundreds of planes of
1 MB under way, more than L2 holds, so both reads come from memory. Here a block takes a chunk of 4,096 numbers, leaves
its mean and the squares about it, and normalises the chunk `lag` blocks before its own. The lag covers the blocks that
run at a time and is some 14 MB: memory sees one read and one write. A chunk's pair is one 64-bit word, never zero, so
whoever merges a plane's words by Chan's formula sees whether all are there; no fence, counter or atomic is met. Nobody
waits either: a chunk whose plane is not complete goes on a list, and a second launch does what is listed, so the result
does not depend on the order of blocks. The squares are about the mean of each warp's numbers, which stay in registers,
so a large common offset costs no precision. The second read is marked as the last one, so that what is done with
leaves L2 first. Planes have an even number of pixels.

Techniques: reuse through L2, statistics and result in one launch, data as its own flag, work list, merged moments
"""
import cupy as cp

source = r'''
const int THREADS = 256;
const int STEPS = 8;                // float2 per thread
const int CHUNK = THREADS * STEPS;  // float2 per block
typedef unsigned long long Word;

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// Mean and squares about it of the sets that a warp's lanes hold; `own` numbers here, `count` together.
__device__ float2 warp_joined(float mean, float squares, float own, float count) {
  float base = __shfl_sync(0xffffffffu, mean, 0);
  float joint = base + warp_sum((mean - base) * own) / count;
  float d = mean - joint;
  return make_float2(joint, warp_sum(squares + d * d * own));
}

// Mean of a plane and what to scale by, from the words of its chunks; a scale of -1 where one is missing.
__device__ float2 plane_stats(const Word* words, int chunks, int pairs) {
  float mean = 0.0f;
  float squares = 0.0f;
  float own = 0.0f;
  bool missing = false;
  for (int c = threadIdx.x; c < chunks; c += 32) {
    Word word = *(const volatile Word*)(words + c);
    missing |= word == 0;
    float count = 2 * min(CHUNK, pairs - c * CHUNK);
    float share = __fdividef(count, own + count);
    float d = __uint_as_float((unsigned)word) - mean;
    mean += d * share;
    squares += __uint_as_float((unsigned)(word >> 32)) + d * d * own * share;
    own += count;
  }
  float2 m = warp_joined(mean, squares, own, 2.0f * pairs);
  float scale = rsqrtf(m.y / (2.0f * pairs) + 1e-5f);
  return make_float2(m.x, __any_sync(0xffffffffu, missing) ? -1.0f : scale);
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

__device__ void load_last(float2* v, const float2* plane, int first, int pairs) {
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    v[k] = first + 32 * k < pairs ? __ldlu(plane + first + 32 * k) : make_float2(0.0f, 0.0f);
  }
}

__device__ void store(const float2* v, float2* plane, int first, int pairs, float2 stats) {
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    if (first + 32 * k < pairs) {
      __stcs(plane + first + 32 * k, make_float2((v[k].x - stats.x) * stats.y, (v[k].y - stats.x) * stats.y));
    }
  }
}

// Mean, squares about it and count of a warp's numbers.
__device__ float3 warp_moments(const float2* v, int first, int pairs) {
  float count = 2 * max(0, min(32 * STEPS, pairs - first + (int)threadIdx.x % 32));
  float sum = 0.0f;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) sum += v[k].x + v[k].y;
  float mean = __fdividef(warp_sum(sum), fmaxf(count, 1.0f));
  float squares = 0.0f;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    float a = v[k].x - mean;
    float b = v[k].y - mean;
    if (first + 32 * k < pairs) squares += a * a + b * b;
  }
  return make_float3(mean, warp_sum(squares), count);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
pipeline(const float2* x, float2* out, Word* words, int* missed, int pairs, int chunks, int total, int lag) {
  __shared__ float3 part[THREADS / 32];
  __shared__ float2 stats;
  int t = threadIdx.x;
  int b = blockIdx.x;
  int ahead = first_of(b, chunks);
  float2 v[STEPS];
  if (b < total) load(v, x + (size_t)(b / chunks) * pairs, ahead, pairs);
  int old = b - lag;
  int plane = max(old, 0) / chunks;
  int first = first_of(max(old, 0), chunks);
  float2 u[STEPS];
  if (old >= 0) {
    load_last(u, x + (size_t)plane * pairs, first, pairs);
    if (t < 32) {
      float2 s = plane_stats(words + (size_t)plane * chunks, chunks, pairs);
      if (t == 0) stats = s;
    }
  }
  if (b < total) {
    float3 m = warp_moments(v, ahead, pairs);
    if (t % 32 == 0) part[t / 32] = m;
  }
  __syncthreads();
  if (t >= THREADS - 32 && b < total) {
    float3 p = t % 32 < THREADS / 32 ? part[t % 32] : make_float3(0.0f, 0.0f, 0.0f);
    float2 m = warp_joined(p.x, p.y, p.z, 2 * min(CHUNK, pairs - b % chunks * CHUNK));
    Word word = (Word)__float_as_uint(m.y) << 32 | __float_as_uint(m.x);
    if (t % 32 == 0) *(volatile Word*)(words + b) = word != 0 ? word : 0x80000000u;  // a mean of -0
  }
  if (old < 0) return;
  if (stats.y != -1.0f) {
    store(u, out + (size_t)plane * pairs, first, pairs, stats);
  } else if (t == 0) {
    missed[1 + atomicAdd(missed, 1)] = old;
  }
}

extern "C" __global__ void leftovers(const float2* x, float2* out, const Word* words, const int* missed, int pairs,
                                     int chunks) {
  __shared__ float2 stats;
  for (int n = blockIdx.x; n < missed[0]; n += gridDim.x) {
    int chunk = missed[1 + n];
    int plane = chunk / chunks;
    int first = first_of(chunk, chunks);
    float2 v[STEPS];
    load(v, x + (size_t)plane * pairs, first, pairs);
    if (threadIdx.x < 32) {
      float2 s = plane_stats(words + (size_t)plane * chunks, chunks, pairs);
      if (threadIdx.x == 0) stats = s;
    }
    __syncthreads();
    store(v, out + (size_t)plane * pairs, first, pairs, stats);
    __syncthreads();
  }
}
'''
pipeline = cp.RawKernel(source, "pipeline")
leftovers = cp.RawKernel(source, "leftovers")
CHUNK = 2048  # float2, as in the source
AHEAD = 768  # chunks by which the statistics lead beyond a plane: more than run at a time


def forward(x):
    batch, channels, height, width = x.shape
    pairs = height * width // 2
    chunks = (pairs + CHUNK - 1) // CHUNK
    total = batch * channels * chunks
    lag = min(total, AHEAD + chunks)
    words = cp.zeros((total,), cp.uint64)
    missed = cp.zeros((total + 1,), cp.int32)
    out = cp.empty(x.shape, cp.float32)
    pipeline((total + lag,), (256,), (x, out, words, missed, pairs, chunks, total, lag))
    leftovers((min(total, 528),), (256,), (x, out, words, missed, pairs, chunks))
    return out
