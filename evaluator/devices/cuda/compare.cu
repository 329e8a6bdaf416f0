// Errors of an output against the exact values, as csrc/judging/compare.hpp defines them, on the device. Each block
// writes the sums of its share; the host adds the blocks up in order, so the result does not depend on scheduling.

#define THREADS 256
#define AT_ONCE 4  // elements that a thread asks for before it looks at the first

// What `largest` allows the output's type to hold: beyond its range the right answer is infinity.
__device__ double within_range(double exact, double largest) {
  return isfinite(exact) && fabs(exact) > largest ? copysign(__longlong_as_double(0x7ff0000000000000LL), exact) : exact;
}

__device__ bool same_class(double seen, double exact) {
  if (isnan(exact)) return isnan(seen);
  if (isinf(exact)) return seen == exact;
  return isfinite(seen);
}

template <class T>
__device__ double value(T x) { return static_cast<double>(x); }
#ifdef __CUDA_FP16_TYPES_EXIST__
__device__ double value(__half x) { return __half2float(x); }
#endif

// Adds up `x` over the block; valid in thread 0.
__device__ double block_sum(double x) {
  __shared__ double shared[THREADS];
  shared[threadIdx.x] = x;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  double total = shared[0];
  __syncthreads();
  return total;
}

// A number that any changed bit of the element at `place` changes.
__device__ unsigned long long mixed(unsigned long long bits, long long place) {
  bits = (bits + 0x9E3779B97F4A7C15ULL * (place + 1)) * 0xD6E8FEB86659FD93ULL;
  return (bits ^ bits >> 32) * 0xD6E8FEB86659FD93ULL;
}
__device__ unsigned long long bits_of(double x) { return __double_as_longlong(x); }
__device__ unsigned long long bits_of(float x) { return __float_as_uint(x); }

// Per block: sum of squares and number of the exact values that the type can hold. sums [blocks, 2].
template <class Exact>
__global__ void scale_sums(const Exact* exact, long long count, double largest, double* sums) {
  double squares = 0, finite = 0;
  long long stride = (long long)gridDim.x * THREADS;
  for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x; first < count; first += AT_ONCE * stride) {
    Exact several[AT_ONCE];
    for (int k = 0; k < AT_ONCE; ++k) several[k] = first + k * stride < count ? exact[first + k * stride] : Exact(0);
    for (int k = 0; k < AT_ONCE && first + k * stride < count; ++k) {
      double magnitude = fabs((double)several[k]);
      bool counts = magnitude <= largest && isfinite(magnitude);
      squares += counts ? magnitude * magnitude : 0.0;
      finite += counts;
    }
  }
  squares = block_sum(squares);
  finite = block_sum(finite);
  if (threadIdx.x == 0) {
    sums[2 * blockIdx.x] = squares;
    sums[2 * blockIdx.x + 1] = finite;
  }
}

// What one thread has found. The largest error is kept as a fraction: a division for each element would take longer
// than to read it.
struct Errors {
  double error_squares, exact_squares, product, off, mismatched, top, below;
  long long top_index;

  __device__ void add(double one, double expected, double inverse_scale, long long i) {
    double difference = 0, relative = 0, error = 0;
    if (!same_class(one, expected)) {
      error = __longlong_as_double(0x7ff0000000000000LL);
      mismatched += 1;
      off += 1;
    } else if (isfinite(expected)) {
      difference = (one - expected) * inverse_scale;
      relative = expected * inverse_scale;
      error = fabs(difference);
      off += difference != 0.0;
    }
    error_squares += difference * difference;
    exact_squares += relative * relative;
    product += difference * relative;
    double over = fabs(relative) + 1.0;
    if (error * below > top * over) {
      top = error;
      below = over;
      top_index = i;
    }
  }
};

// Per block: squares of the error and of the exact values in units of the scale, their product, elements that differ,
// elements of another class, and the worst element with its error; a digest of all bits of the exact values.
// sums [blocks, 6], worst [blocks], digests [blocks].
template <class T, class Exact>
__global__ void error_sums(const T* seen, const Exact* exact, long long count, double largest, double inverse_scale,
                           double* sums, long long* worst, unsigned long long* digests) {
  Errors errors = {0, 0, 0, 0, 0, -1, 1, -1};
  __shared__ unsigned long long digest;
  if (threadIdx.x == 0) digest = 0;
  unsigned long long share = 0;
  long long stride = (long long)gridDim.x * THREADS;
  for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x; first < count; first += AT_ONCE * stride) {
    T ones[AT_ONCE];
    Exact others[AT_ONCE];
    for (int k = 0; k < AT_ONCE; ++k) {
      long long i = first + k * stride < count ? first + k * stride : first;
      ones[k] = seen[i];
      others[k] = exact[i];
    }
    for (int k = 0; k < AT_ONCE && first + k * stride < count; ++k) {
      errors.add(value(ones[k]), within_range(others[k], largest), inverse_scale, first + k * stride);
      share += mixed(bits_of(others[k]), first + k * stride);
    }
  }
  __shared__ double tops[THREADS];
  __shared__ long long indices[THREADS];
  tops[threadIdx.x] = errors.top / errors.below;
  indices[threadIdx.x] = errors.top_index;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half && tops[threadIdx.x + half] > tops[threadIdx.x]) {
      tops[threadIdx.x] = tops[threadIdx.x + half];
      indices[threadIdx.x] = indices[threadIdx.x + half];
    }
    __syncthreads();
  }
  double totals[5] = {errors.error_squares, errors.exact_squares, errors.product, errors.off, errors.mismatched};
  for (int k = 0; k < 5; ++k) {
    double total = block_sum(totals[k]);
    if (threadIdx.x == 0) sums[6 * blockIdx.x + k] = total;
  }
  atomicAdd(&digest, share);
  __syncthreads();
  if (threadIdx.x == 0) {
    digests[blockIdx.x] = digest;
    sums[6 * blockIdx.x + 5] = tops[0];
    worst[blockIdx.x] = indices[0];
  }
}

// Adds to `changed` how many bytes are not the given one.
__global__ void count_changed(const unsigned char* bytes, long long count, unsigned char byte, unsigned* changed) {
  unsigned mine = 0;
  long long stride = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < count; i += stride) mine += bytes[i] != byte;
  if (mine) atomicAdd(changed, mine);
}

// Per block, how many of `count` elements of `width` bytes are bit for bit the given word. [blocks]
template <class T>
__global__ void equal_counts(const T* bits, long long count, T word, double* sums) {
  double equal = 0;
  long long stride = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < count; i += stride) equal += bits[i] == word;
  equal = block_sum(equal);
  if (threadIdx.x == 0) sums[blockIdx.x] = equal;
}

// One of `count` places, which only `seed` tells.
__device__ long long secret_place(unsigned long long seed, int number, long long count) {
  return mixed(seed, number) % (unsigned long long)count;
}

// One block. Writes `word` to as many elements as it has threads.
template <class T>
__global__ void seal(T* bits, long long count, unsigned long long seed, T word) {
  bits[secret_place(seed, threadIdx.x, count)] = word;
}

// Adds to `left` how many of the elements that `seal` wrote are as it wrote them.
template <class T>
__global__ void count_sealed(const T* bits, long long count, unsigned long long seed, T word, unsigned* left) {
  if (bits[secret_place(seed, threadIdx.x, count)] == word) atomicAdd(left, 1u);
}

// Per block, how many bytes differ. [blocks]
__global__ void different_bytes(const unsigned char* one, const unsigned char* other, long long count, double* sums) {
  double different = 0;
  long long words = count / 16;
  long long stride = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < words; i += stride) {
    uint4 a = ((const uint4*)one)[i], b = ((const uint4*)other)[i];
    different += (a.x != b.x) + (a.y != b.y) + (a.z != b.z) + (a.w != b.w);
  }
  for (long long i = 16 * words + (long long)blockIdx.x * THREADS + threadIdx.x; i < count; i += stride)
    different += one[i] != other[i];
  different = block_sum(different);
  if (threadIdx.x == 0) sums[blockIdx.x] = different;
}
