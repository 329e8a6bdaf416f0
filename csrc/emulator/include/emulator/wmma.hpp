// Warp matrix multiply-accumulate. The layout of a fragment is unspecified in CUDA; here element i of lane l is
// matrix element l * num_elements + i in row-major order, and the multiplication gathers all lanes' fragments.
#pragma once
#include <type_traits>

#include "bfloat16.hpp"
#include "half.hpp"
#include "warp.hpp"

namespace emulator_nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

template <class Use, int M, int N, int K>
struct Extent;
template <int M, int N, int K>
struct Extent<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct Extent<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct Extent<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};

// What a fragment of T stores and loads: tf32 values travel as float.
template <class T>
struct StorageOf {
  using type = T;
};
template <>
struct StorageOf<precision::tf32> {
  using type = float;
};

template <class T>
constexpr bool supported_shape(int m, int n, int k) {
  if (std::is_same_v<T, double>) return m == 8 && n == 8 && k == 4;
  if (std::is_same_v<T, precision::tf32>) return m == 16 && n == 16 && k == 8;
  if (std::is_same_v<T, float> || std::is_same_v<T, int>) return true;  // accumulators of any of the above
  return k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));
}

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(supported_shape<T>(M, N, K), "this m, n, k is no wmma shape of this element type");
  static constexpr int rows = Extent<Use, M, N, K>::rows, columns = Extent<Use, M, N, K>::columns;
  static constexpr int num_elements = rows * columns / 32, num_storage_elements = num_elements;
  using element_type = typename StorageOf<T>::type;
  using storage_element_type = element_type;
  element_type x[num_elements];
};

template <class Fragment, class T>
inline void fill_fragment(Fragment& target, const T& value) {
  for (auto& element : target.x) element = static_cast<typename Fragment::element_type>(value);
}

template <class Fragment, class Visit>
inline void visit_elements(unsigned leading, bool column_major, Visit visit) {
  const int first = static_cast<int>(emulator::lane()) * Fragment::num_elements;
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const unsigned row = (first + i) / Fragment::columns, column = (first + i) % Fragment::columns;
    visit(i, column_major ? column * leading + row : row * leading + column);
  }
}

// Reading and writing memory meets the other lanes, as every warp-wide operation does.
template <class Use, int M, int N, int K, class T, class Layout, class Element>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& target, const Element* source, unsigned leading,
                             emulator::Site site = __builtin_LINE()) {
  static_assert(!std::is_void_v<Layout>, "an accumulator is loaded with a layout argument");
  emulator_warp(emulator::kSyncWarp, ~0u, 0, 0, site);
  visit_elements<fragment<Use, M, N, K, T, Layout>>(leading, std::is_same_v<Layout, col_major>,
                                                    [&](int i, unsigned at) { target.x[i] = source[at]; });
}
template <int M, int N, int K, class T>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& target, const T* source, unsigned leading,
                             layout_t layout, emulator::Site site = __builtin_LINE()) {
  emulator_warp(emulator::kSyncWarp, ~0u, 0, 0, site);
  visit_elements<fragment<accumulator, M, N, K, T>>(leading, layout == mem_col_major,
                                                    [&](int i, unsigned at) { target.x[i] = source[at]; });
}
template <int M, int N, int K, class T>
inline void store_matrix_sync(T* target, const fragment<accumulator, M, N, K, T>& source, unsigned leading,
                              layout_t layout, emulator::Site site = __builtin_LINE()) {
  visit_elements<fragment<accumulator, M, N, K, T>>(leading, layout == mem_col_major,
                                                    [&](int i, unsigned at) { target[at] = source.x[i]; });
  emulator_warp(emulator::kSyncWarp, ~0u, 0, 0, site);
}

// 10 explicit mantissa bits, to nearest with ties away from zero, as cvt.rna.tf32 rounds.
inline float round_to_tf32(float x) {
  if (x != x) return x;
  return emulator::bit_cast<float>((emulator::bit_cast<std::uint32_t>(x) + 0x1000u) & 0xffffe000u);
}

template <int M, int N, int K, class TA, class LA, class TB, class LB, class TD, class TC>
struct Multiplication {
  const typename StorageOf<TA>::type* a;
  const typename StorageOf<TB>::type* b;
  const TC* c;
  TD* d;

  // Half products are exact in float; integers accumulate in int, double in double.
  using Sum = std::conditional_t<std::is_same_v<TC, double>, double,
                                 std::conditional_t<std::is_integral_v<TC>, int, float>>;

  template <class T, class Value>
  static Sum widen(Value value) {
    if constexpr (std::is_same_v<T, precision::tf32>) return round_to_tf32(value);
    else return static_cast<Sum>(value);
  }

  static void run(void** payloads, unsigned) {
    constexpr int kA = M * K / 32, kB = K * N / 32, kD = M * N / 32;
    Sum left[M * K], right[K * N], sum[M * N];
    for (int lane = 0; lane < 32; ++lane) {
      const auto& part = *static_cast<const Multiplication*>(payloads[lane]);
      for (int i = 0; i < kA; ++i) left[lane * kA + i] = widen<TA>(part.a[i]);
      for (int i = 0; i < kB; ++i) right[lane * kB + i] = widen<TB>(part.b[i]);
      for (int i = 0; i < kD; ++i) sum[lane * kD + i] = static_cast<Sum>(part.c[i]);
    }
    for (int row = 0; row < M; ++row)
      for (int k = 0; k < K; ++k) {
        const Sum factor = left[row * K + k];
        for (int column = 0; column < N; ++column) sum[row * N + column] += factor * right[k * N + column];
      }
    for (int lane = 0; lane < 32; ++lane) {
      const auto& part = *static_cast<const Multiplication*>(payloads[lane]);
      for (int i = 0; i < kD; ++i) part.d[i] = static_cast<TD>(sum[lane * kD + i]);
    }
  }
};

template <int M, int N, int K, class TA, class LA, class TB, class LB, class TD, class TC>
inline void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
                     const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC>& c,
                     emulator::Site site = __builtin_LINE()) {
  using Work = Multiplication<M, N, K, TA, LA, TB, LB, TD, TC>;
  Work work{a.x, b.x, c.x, d.x};
  emulator_warp_collective(~0u, &work, &Work::run, site);
}

inline float __float_to_tf32(float x) { return round_to_tf32(x); }

}  // namespace emulator_nvcuda::wmma
