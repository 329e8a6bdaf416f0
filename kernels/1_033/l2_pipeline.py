"""Statistics and result in one launch; what was read last for the statistics is normalised first, from L2.

A channel is 67 MB, read for its mean and variance and again to be normalised: more than L2 holds, but not much more. A
block takes a chunk of 4,096 numbers for the statistics of one channel and normalises a chunk of the channel before, in
the opposite order. The last 30 MB of a channel are loaded to stay in L2; all else, loads that will not be met again and
the stores, is marked to be evicted first. So nearly half of the second read does not come from memory. A chunk's mean
and squares about it are one 64-bit word, never zero, so whoever merges words by Chan's formula sees whether all are
there: a later block merges those of a plane, whoever normalises those of the planes. No fence, counter or atomic is
met. Nobody waits either: a chunk whose channel is not complete goes on a list, and later launches do what is listed, so
the result does not depend on the order of blocks. The squares are about the mean of each warp's numbers, which stay in
registers, so a large common offset costs no precision. Planes have an even number of pixels.

Techniques: reuse through L2, reversed order, cache hints, data as its own flag, work list, merged moments
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

__device__ Word word_of(float2 m) {
  Word word = (Word)__float_as_uint(m.y) << 32 | __float_as_uint(m.x);
  return word != 0 ? word : 0x80000000u;  // a mean of -0
}

// `count` words of `each` numbers, the last of `last`, merged by a warp; false where one is missing.
__device__ bool merged(const Word* words, int count, int each, int last, float2* result) {
  float mean = 0.0f;
  float squares = 0.0f;
  float own = 0.0f;
  bool missing = false;
  for (int i = threadIdx.x % 32; i < count; i += 32) {
    Word word = *(const volatile Word*)(words + i);
    missing |= word == 0;
    float more = i < count - 1 ? each : last;
    float share = __fdividef(more, own + more);
    float d = __uint_as_float((unsigned)word) - mean;
    mean += d * share;
    squares += __uint_as_float((unsigned)(word >> 32)) + d * d * own * share;
    own += more;
  }
  *result = warp_joined(mean, squares, own, (float)each * (count - 1) + last);
  return !__any_sync(0xffffffffu, missing);
}

// The word of a plane from those of its chunks; 0 where one is missing.
__device__ Word plane_word(const Word* words, int plane, int chunks, int pairs) {
  float2 m;
  int last = 2 * (pairs - (chunks - 1) * CHUNK);
  return merged(words + (size_t)plane * chunks, chunks, 2 * CHUNK, last, &m) ? word_of(m) : 0;
}

// Mean of a channel and what to scale by, from the words of its planes; a scale of -1 where one is missing.
__device__ float2 channel_stats(const Word* planes, int channel, int batch, int pairs) {
  float2 m;
  bool complete = merged(planes + channel * batch, batch, 2 * pairs, 2 * pairs, &m);
  float scale = rsqrtf(m.y / ((float)batch * 2 * pairs) + 1e-5f);
  return make_float2(m.x, complete ? scale : -1.0f);
}

// Where a plane of a channel begins, for a chunk counted from the channel's first.
__device__ size_t start_of(int channel, int chunk, int channels, int chunks, int pairs) {
  return ((size_t)(chunk / chunks) * channels + channel) * pairs;
}

// What a thread has of a chunk; a warp's numbers lie together.
__device__ int first_of(int chunk, int chunks) {
  return chunk % chunks * CHUNK + threadIdx.x / 32 * (32 * STEPS) + threadIdx.x % 32;
}

__device__ void load(float2* v, const float2* plane, int first, int pairs, bool keep) {
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    const float2* p = plane + first + 32 * k;
    v[k] = make_float2(0.0f, 0.0f);
    if (first + 32 * k < pairs) v[k] = keep ? *p : __ldcs(p);
  }
}

__device__ void store(const float2* v, float2* plane, int first, int pairs, float2 stats, float w, float h) {
  float scale = stats.y * w;
  #pragma unroll
  for (int k = 0; k < STEPS; ++k) {
    if (first + 32 * k < pairs) {
      __stcs(plane + first + 32 * k, make_float2((v[k].x - stats.x) * scale + h, (v[k].y - stats.x) * scale + h));
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
pipeline(const float2* x, const float* weight, const float* bias, float2* out, Word* words, Word* planes, int* missed,
         int pairs, int chunks, int channels, int batch, int ahead, int lag, int kept) {
  __shared__ float3 part[THREADS / 32];
  __shared__ float2 stats;
  int t = threadIdx.x;
  int b = blockIdx.x;
  int members = batch * chunks;
  int total = members * channels;
  int chunk = b % members;
  int begin = first_of(chunk, chunks);
  float2 v[STEPS];
  if (b < total) {
    bool keep = chunk >= members - kept;
    load(v, x + start_of(b / members, chunk, channels, chunks, pairs), begin, pairs, keep);
  }
  int old = b - lag;
  int channel = max(old, 0) / members;
  int reversed = members - 1 - max(old, 0) % members;
  size_t start = start_of(channel, reversed, channels, chunks, pairs);
  int first = first_of(reversed, chunks);
  float w = weight[channel];
  float h = bias[channel];
  float2 u[STEPS];
  if (old >= 0) {
    load(u, x + start, first, pairs, false);
    if (t < 32) {
      float2 s = channel_stats(planes, channel, batch, pairs);
      if (t == 0) stats = s;
    }
  }
  if (b < total) {
    float3 m = warp_moments(v, begin, pairs);
    if (t % 32 == 0) part[t / 32] = m;
  }
  __syncthreads();
  if (t >= THREADS - 32 && b < total) {
    float3 p = t % 32 < THREADS / 32 ? part[t % 32] : make_float3(0.0f, 0.0f, 0.0f);
    float2 m = warp_joined(p.x, p.y, p.z, 2 * min(CHUNK, pairs - chunk % chunks * CHUNK));
    if (t % 32 == 0) *(volatile Word*)(words + b) = word_of(m);
  }
  int end = b - ahead + 1;  // of chunks that have their words by now
  if (t >= 32 && t < 64 && end > 0 && end <= total && end % chunks == 0) {
    Word word = plane_word(words, end / chunks - 1, chunks, pairs);
    if (t == 32) *(volatile Word*)(planes + end / chunks - 1) = word;
  }
  if (old < 0) return;
  if (stats.y != -1.0f) {
    store(u, out + start, first, pairs, stats, w, h);
  } else if (t == 0) {
    missed[1 + atomicAdd(missed, 1)] = old;
  }
}

extern "C" __global__ void finish_planes(const Word* words, Word* planes, int pairs, int chunks) {
  Word word = plane_word(words, blockIdx.x, chunks, pairs);
  if (threadIdx.x == 0) planes[blockIdx.x] = word;
}

extern "C" __global__ void leftovers(const float2* x, const float* weight, const float* bias, float2* out,
                                     const Word* planes, const int* missed, int pairs, int chunks, int channels,
                                     int batch) {
  __shared__ float2 stats;
  int members = batch * chunks;
  for (int n = blockIdx.x; n < missed[0]; n += gridDim.x) {
    int old = missed[1 + n];
    int channel = old / members;
    int reversed = members - 1 - old % members;
    size_t start = start_of(channel, reversed, channels, chunks, pairs);
    int first = first_of(reversed, chunks);
    float2 v[STEPS];
    load(v, x + start, first, pairs, false);
    if (threadIdx.x < 32) {
      float2 s = channel_stats(planes, channel, batch, pairs);
      if (threadIdx.x == 0) stats = s;
    }
    __syncthreads();
    store(v, out + start, first, pairs, stats, weight[channel], bias[channel]);
    __syncthreads();
  }
}
'''
pipeline = cp.RawKernel(source, "pipeline")
finish_planes = cp.RawKernel(source, "finish_planes")
leftovers = cp.RawKernel(source, "leftovers")
CHUNK = 2048  # float2, as in the source
AHEAD = 768  # chunks, more than run at a time: by so many a plane's words are merged late, and a channel's again
KEPT = 1920  # chunks, 30 MB: what is to stay in L2


def forward(x, bn_weight, bn_bias):
    batch, channels, height, width = x.shape
    pairs = height * width // 2
    chunks = (pairs + CHUNK - 1) // CHUNK
    total = batch * channels * chunks
    ahead = min(total, AHEAD)
    lag = batch * chunks + ahead + min(total, AHEAD)
    words = cp.zeros((total,), cp.uint64)
    planes = cp.zeros((batch * channels,), cp.uint64)
    missed = cp.zeros((total + 1,), cp.int32)
    out = cp.empty(x.shape, cp.float32)
    arrays = (x, bn_weight, bn_bias, out)
    sizes = (pairs, chunks, channels, batch)
    pipeline((total + lag,), (256,), (*arrays, words, planes, missed, *sizes, ahead, lag, KEPT))
    finish_planes((batch * channels,), (32,), (words, planes, pairs, chunks))
    leftovers((min(total, 528),), (256,), (*arrays, planes, missed, *sizes))
    return out
