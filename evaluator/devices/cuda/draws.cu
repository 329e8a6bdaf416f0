// Random arrays by Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011). Element i is word i % 4 of the block with the
// counter (i / 4, call): what is drawn depends on the key, the call and the place alone, however it is launched.

struct Words { unsigned w[4]; };

__device__ Words philox(unsigned long long key, unsigned long long block, unsigned call) {
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  Words c = {{(unsigned)block, (unsigned)(block >> 32), call, 0u}};
  for (int round = 0; round < 10; ++round) {
    unsigned long long p = 0xD2511F53ULL * c.w[0], q = 0xCD9E8D57ULL * c.w[2];
    c = {{(unsigned)(q >> 32) ^ c.w[1] ^ k0, (unsigned)q, (unsigned)(p >> 32) ^ c.w[3] ^ k1, (unsigned)p}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Four numbers from one block.
struct Uniform {  // multiples of 2^-24 in [0, 1)
  typedef float Number;
  __device__ void operator()(const Words& c, float* x) const {
    for (int k = 0; k < 4; ++k) x[k] = (c.w[k] >> 8) * 0x1p-24f;
  }
};
struct Normal {  // Box and Muller's; at most 6.7 from zero, which one number in 10^11 would exceed
  typedef float Number;
  __device__ void operator()(const Words& c, float* x) const {
    for (int k = 0; k < 4; k += 2) {
      float radius = sqrtf(-2.0f * logf(c.w[k] * 0x1p-32f + 0x1p-33f)), angle = 2.0f * (c.w[k + 1] * 0x1p-32f);
      x[k] = radius * cospif(angle);
      x[k + 1] = radius * sinpif(angle);
    }
  }
};
struct Integers {  // low + [0, range), a range below 2^32 / 1000 to within a thousandth
  typedef long long Number;
  long long low;
  unsigned range;
  __device__ void operator()(const Words& c, long long* x) const {
    for (int k = 0; k < 4; ++k) x[k] = low + (long long)((unsigned long long)c.w[k] * range >> 32);
  }
};

// `out` [count] is aligned to four of its numbers.
template <class Draw>
__device__ void draw(typename Draw::Number* out, long long count, unsigned long long key, unsigned call, Draw from) {
  typedef typename Draw::Number Number;
  struct alignas(16) Four { Number x[4]; };
  long long stride = (long long)gridDim.x * blockDim.x, blocks = (count + 3) / 4;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += stride) {
    Four four;
    from(philox(key, i, call), four.x);
    if (4 * i + 4 <= count)
      reinterpret_cast<Four*>(out)[i] = four;
    else
      for (int k = 0; 4 * i + k < count; ++k) out[4 * i + k] = four.x[k];
  }
}

extern "C" __global__ void uniform(float* out, long long count, unsigned long long key, unsigned call) {
  draw(out, count, key, call, Uniform());
}
extern "C" __global__ void normal(float* out, long long count, unsigned long long key, unsigned call) {
  draw(out, count, key, call, Normal());
}
extern "C" __global__ void integers(long long* out, long long count, unsigned long long key, unsigned call,
                                    long long low, unsigned range) {
  draw(out, count, key, call, Integers{low, range});
}

// `x` [count], each element one spacing up or down at random.
extern "C" __global__ void moved(const float* x, float* out, long long count, unsigned long long key) {
  long long stride = (long long)gridDim.x * blockDim.x, blocks = (count + 3) / 4;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += stride) {
    Words c = philox(key, i, 0);
    for (int k = 0; k < 4 && 4 * i + k < count; ++k)
      out[4 * i + k] = x[4 * i + k] * (c.w[k] >> 31 ? 1.0f + 0x1p-23f : 1.0f - 0x1p-23f);
  }
}
