"""One launch in which a block reads a chunk for the statistics and normalises an earlier one, which is still in L2.

A group must be read for its mean and variance and again to be normalised. One block per group has hundreds of groups
of 8 MB under way, more than L2 holds, so both reads come from memory. Here a block takes a chunk of 4,096 numbers,
leaves its mean and the squares about it, and normalises the chunk at the same place of an earlier plane. The lag is a
group and the blocks that run at a time, some 18 MB: memory sees one read and one write; the second read is marked as
the last, so that what is done with leaves L2 first. A chunk's pair is one 64-bit word; its squares are kept negative,
with a sign even where they are 0, so that a word that is 0 is missing, and whoever merges a group's words by Chan's
formula sees whether all are there; no fence, counter or atomic is met. Nobody waits either: a chunk whose group is not
complete goes on a list, and a second launch does what is listed, so the result does not depend on the order of blocks.

Such a block is soon bound by latency and instructions. So all threads share in reading a group's hundreds of words,
together with their numbers, and both merges, of the new chunk and of the old group, end in the same barrier. The grid
is chunks by planes and the lag whole planes; a warp with a full share meets no guards. The squares are about the mean
of each warp's numbers, which stay in registers, so a large common offset costs no precision. Planes have an even number
of pixels.

Techniques: reuse through L2, statistics and result in one launch, data as its own flag, work list, merged moments
"""
import cupy as cp

source = r'''
const int THREADS = 256;
const int WARPS = THREADS / 32;
const int STEPS = 8;                // float2 per thread
const int CHUNK = THREADS * STEPS;  // float2 per block
typedef unsigned long long Word;

template <int lanes> __device__ float sum(float v) {
  #pragma unroll
  for (int d = lanes / 2; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// Mean, squares about it and count (x, y, z) of the sets of as many lanes. Squares that are not a number stay so.
template <int lanes> __device__ float3 joined(float3 a) {
  float count = sum<lanes>(a.z);
  float base = __shfl_sync(0xffffffffu, a.x, 0);
  float mean = base + __fdividef(sum<lanes>((a.x - base) * a.z), fmaxf(count, 1.0f));
  float d = a.x - mean;
  return make_float3(mean, sum<lanes>(a.y + d * d * a.z), count);
}

// This warp's share of the words of a group, `chunks` for each of its `depth` planes.
__device__ float3 share_of_words(const Word* words, int chunks, int depth, int pairs) {
  float3 a = make_float3(0.0f, 0.0f, 0.0f);
  for (int c = threadIdx.x; c < chunks * depth; c += THREADS) {
    Word word = *(const volatile Word*)(words + c);
    float squares = word != 0 ? -__uint_as_float((unsigned)(word >> 32)) : __int_as_float(0x7fffffff);
    float more = 2 * min(CHUNK, pairs - c % chunks * CHUNK);
    float share = __fdividef(more, a.z + more);
    float d = __uint_as_float((unsigned)word) - a.x;
    a.x += d * share;
    a.y += squares + d * d * a.z * share;
    a.z += more;
  }
  return joined<32>(a);
}

template <bool last> __device__ float2 fetched(const float2* p) { return last ? __ldlu(p) : *p; }

// A warp's numbers lie together; `left` pairs of the plane begin at `p`.
template <bool last> __device__ void load(float2* v, const float2* p, int left) {
  if (left > 32 * (STEPS - 1)) {
    #pragma unroll
    for (int k = 0; k < STEPS; ++k) v[k] = fetched<last>(p + 32 * k);
  } else {
    #pragma unroll
    for (int k = 0; k < STEPS; ++k) v[k] = 32 * k < left ? fetched<last>(p + 32 * k) : make_float2(0.0f, 0.0f);
  }
}

__device__ void store(float2* v, float2* p, int left, float mean, float scale, float bias) {
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    v[k] = make_float2((v[k].x - mean) * scale + bias, (v[k].y - mean) * scale + bias);
  }
  if (left > 32 * (STEPS - 1)) {
    #pragma unroll
    for (int k = 0; k < STEPS; ++k) __stcs(p + 32 * k, v[k]);
  } else {
    #pragma unroll
    for (int k = 0; k < STEPS; ++k) {
      if (32 * k < left) __stcs(p + 32 * k, v[k]);
    }
  }
}

// Of a warp's numbers, of which `left` pairs and on belong to the plane from this lane's first.
__device__ float3 warp_moments(const float2* v, int left) {
  float count = 2 * max(0, min(32 * STEPS, left + (int)threadIdx.x % 32));
  float total = 0.0f;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) total += v[k].x + v[k].y;
  float mean = __fdividef(sum<32>(total), fmaxf(count, 1.0f));
  float squares = 0.0f;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    float a = v[k].x - mean;
    float b = v[k].y - mean;
    if (32 * k < left) squares += a * a + b * b;
  }
  return make_float3(mean, sum<32>(squares), count);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
pipeline(const float2* x, const float* weight, const float* bias, float2* out, Word* words, int* missed, int pairs,
         int chunks, int channels, int depth, int planes, int lag) {
  __shared__ float3 part[WARPS];
  __shared__ float3 found[WARPS];
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int plane = blockIdx.y;
  int old = plane - lag;
  int first = blockIdx.x * CHUNK + warp * (32 * STEPS) + lane;
  float2 v[STEPS];
  float2 u[STEPS];
  float w = weight[max(old, 0) % channels];
  float h = bias[max(old, 0) % channels];
  if (plane < planes) load<false>(v, x + (size_t)plane * pairs + first, pairs - first);
  if (old >= 0) {
    load<true>(u, x + (size_t)old * pairs + first, pairs - first);
    float3 p = make_float3(0.0f, 0.0f, 0.0f);
    if (warp * 32 < chunks * depth) p = share_of_words(words + old / depth * depth * chunks, chunks, depth, pairs);
    if (lane == 0) found[warp] = p;
  }
  if (plane < planes) {
    float3 p = warp_moments(v, pairs - first);
    if (lane == 0) part[warp] = p;
  }
  __syncthreads();
  if (plane < planes && warp == 0) {
    float3 p = joined<WARPS>(part[lane % WARPS]);
    Word word = (Word)__float_as_uint(-p.y) << 32 | __float_as_uint(p.x);
    if (lane == 0) *(volatile Word*)(words + plane * chunks + blockIdx.x) = word;
  }
  if (old < 0) return;
  float3 s = joined<WARPS>(found[lane % WARPS]);
  if (s.y == s.y) {
    float scale = rsqrtf(__fdividef(s.y, s.z) + 1e-5f) * w;
    store(u, out + (size_t)old * pairs + first, pairs - first, s.x, scale, h);
  } else if (threadIdx.x == 0) {
    missed[1 + atomicAdd(missed, 1)] = old * chunks + blockIdx.x;
  }
}

extern "C" __global__ void leftovers(const float2* x, const float* weight, const float* bias, float2* out,
                                     const Word* words, const int* missed, int pairs, int chunks, int channels,
                                     int depth) {
  __shared__ float3 found[WARPS];
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  for (int n = blockIdx.x; n < missed[0]; n += gridDim.x) {
    int plane = missed[1 + n] / chunks;
    int first = missed[1 + n] % chunks * CHUNK + warp * (32 * STEPS) + lane;
    float2 v[STEPS];
    load<false>(v, x + (size_t)plane * pairs + first, pairs - first);
    float3 p = share_of_words(words + plane / depth * depth * chunks, chunks, depth, pairs);
    if (lane == 0) found[warp] = p;
    __syncthreads();
    float3 s = joined<WARPS>(found[lane % WARPS]);
    int c = plane % channels;
    float scale = rsqrtf(__fdividef(s.y, s.z) + 1e-5f) * weight[c];
    store(v, out + (size_t)plane * pairs + first, pairs - first, s.x, scale, bias[c]);
    __syncthreads();
  }
}
'''
pipeline = cp.RawKernel(source, "pipeline")
leftovers = cp.RawKernel(source, "leftovers")
CHUNK = 2048  # float2, as in the source
AHEAD = 576  # chunks by which the statistics lead: more than run at a time


def forward(x, gn_weight, gn_bias):
    batch, channels, height, width = x.shape
    planes = batch * channels
    depth = channels // 8  # planes of a group
    pairs = height * width // 2
    chunks = (pairs + CHUNK - 1) // CHUNK
    lag = min(planes, depth + (AHEAD + chunks - 1) // chunks)
    words = cp.zeros((planes * chunks,), cp.uint64)
    missed = cp.zeros((planes * chunks + 1,), cp.int32)
    out = cp.empty(x.shape, cp.float32)
    arrays = (x, gn_weight, gn_bias, out, words, missed)
    sizes = (pairs, chunks, channels, depth)
    pipeline((chunks, planes + lag), (256,), (*arrays, *sizes, planes, lag))
    leftovers((min(planes * chunks, 528),), (256,), (*arrays, *sizes))
    return out
