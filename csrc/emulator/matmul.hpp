// The plan's matrix product step: out[m, n] = a[m, k] @ b[k, n], per batch, operands of any strides. Packed panels and
// a register tile that the compiler vectorises; sums run over the whole of k in one register, so float16 and bfloat16
// are rounded once.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "include/emulator/small_floats.hpp"

namespace emulator {

struct MatmulShape {
  std::size_t batch, m, n, k;
  std::size_t a_stride, b_stride;  // elements between batches, 0 where one matrix serves all
  std::size_t a_down, a_across, b_down, b_across;  // elements between rows, and between columns
};

namespace matmul {

constexpr std::size_t kVectorBytes = 32, kRows = 6, kRowsPerBlock = 96;

struct Half {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(Half x) { return half_to_float(x.bits); }
inline float widen(Bfloat16 x) { return bfloat16_to_float(x.bits); }
inline void narrow(float x, float& to) { to = x; }
inline void narrow(double x, double& to) { to = x; }
inline void narrow(float x, Half& to) { to.bits = half_from_float(x); }
inline void narrow(float x, Bfloat16& to) { to.bits = bfloat16_from_float(x); }

template <class Sum>
struct Tile {
  static constexpr std::size_t kLanes = kVectorBytes / sizeof(Sum), kColumns = 2 * kLanes;
  typedef Sum Vector __attribute__((vector_size(kVectorBytes), aligned(alignof(Sum))));

  // result[kRows][kColumns] = left (k groups of kRows) times right (k groups of kColumns).
  [[gnu::always_inline]] static void multiply(const Sum* left, const Sum* right, std::size_t k, Sum* result) {
    Vector low[kRows] = {}, high[kRows] = {};
    for (std::size_t i = 0; i < k; ++i, left += kRows, right += kColumns) {
      const Vector b0 = *reinterpret_cast<const Vector*>(right);
      const Vector b1 = *reinterpret_cast<const Vector*>(right + kLanes);
#pragma GCC unroll 6
      for (std::size_t row = 0; row < kRows; ++row) {
        low[row] += b0 * left[row];
        high[row] += b1 * left[row];
      }
    }
#pragma GCC unroll 6
    for (std::size_t row = 0; row < kRows; ++row) {
      *reinterpret_cast<Vector*>(result + row * kColumns) = low[row];
      *reinterpret_cast<Vector*>(result + row * kColumns + kLanes) = high[row];
    }
  }

  static void multiply_plain(const Sum* left, const Sum* right, std::size_t k, Sum* result) {
    multiply(left, right, k, result);
  }
#if defined(__x86_64__)
  [[gnu::target("avx2,fma")]] static void multiply_avx2(const Sum* left, const Sum* right, std::size_t k, Sum* result) {
    multiply(left, right, k, result);
  }
#endif
};

// Groups of kRows rows, transposed: packed[group][k][kRows]; rows past the end are 0.
template <class T, class Sum>
inline void pack_rows(const T* a, std::size_t rows, const MatmulShape& shape, Sum* packed) {
  for (std::size_t first = 0; first < rows; first += kRows)
    for (std::size_t i = 0; i < shape.k; ++i)
      for (std::size_t row = first; row < first + kRows; ++row)
        *packed++ = row < rows ? static_cast<Sum>(widen(a[row * shape.a_down + i * shape.a_across])) : Sum{0};
}

template <class T, class Sum>
inline void pack_columns(const T* b, std::size_t columns, const MatmulShape& shape, Sum* packed) {
  constexpr std::size_t width = Tile<Sum>::kColumns;
  for (std::size_t i = 0; i < shape.k; ++i, b += shape.b_down, packed += width) {
    for (std::size_t column = 0; column < columns; ++column)
      packed[column] = static_cast<Sum>(widen(b[column * shape.b_across]));
    for (std::size_t column = columns; column < width; ++column) packed[column] = Sum{0};
  }
}

template <class T, class Sum>
inline void multiply_one(const T* a, const T* b, T* out, const MatmulShape& shape, std::vector<Sum>& left,
                         std::vector<Sum>& right) {
  using Kernel = Tile<Sum>;
  constexpr std::size_t width = Kernel::kColumns;
  auto tile = &Kernel::multiply_plain;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tile = &Kernel::multiply_avx2;
#endif
  Sum result[kRows * width];
  for (std::size_t top = 0; top < shape.m; top += kRowsPerBlock) {
    const std::size_t rows = std::min(kRowsPerBlock, shape.m - top);
    pack_rows(a + top * shape.a_down, rows, shape, left.data());
    for (std::size_t side = 0; side < shape.n; side += width) {
      const std::size_t columns = std::min(width, shape.n - side);
      pack_columns(b + side * shape.b_across, columns, shape, right.data());
      for (std::size_t first = 0; first < rows; first += kRows) {
        tile(left.data() + first * shape.k, right.data(), shape.k, result);
        for (std::size_t row = first; row < std::min(first + kRows, rows); ++row)
          for (std::size_t column = 0; column < columns; ++column)
            narrow(result[(row - first) * width + column], out[(top + row) * shape.n + side + column]);
      }
    }
  }
}

template <class T, class Sum>
inline void multiply_all(const void* a, const void* b, void* out, const MatmulShape& shape) {
  std::vector<Sum> left((kRowsPerBlock + kRows) * shape.k + 1), right(Tile<Sum>::kColumns * shape.k + 1);
  for (std::size_t i = 0; i < shape.batch; ++i)
    multiply_one(static_cast<const T*>(a) + i * shape.a_stride, static_cast<const T*>(b) + i * shape.b_stride,
                 static_cast<T*>(out) + i * shape.m * shape.n, shape, left, right);
}

}  // namespace matmul
}  // namespace emulator
