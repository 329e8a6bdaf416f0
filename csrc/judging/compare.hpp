// Errors of an output against the float64 oracle: in a scale-aware norm, and element by element. Free of CUDA.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace judging {

// IEEE binary16 held in its bits, so that half outputs are compared without a copy.
struct Half {
  std::uint16_t bits;

  explicit operator double() const {
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    double magnitude;
    if (exponent == 31) {
      magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else {
      magnitude = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    }
    return bits & 0x8000 ? -magnitude : magnitude;
  }
};

struct Comparison {
  double norm_error;     // |seen - exact|_2 / |exact|_2
  double element_error;  // largest |seen_i - exact_i| / (|exact_i| + scale)
  double scale;          // root mean square of the finite exact values, at least the smallest normal float
  double alignment;      // cosine between the error and the exact output: near 0 for rounding, near 1 for a wrong factor
  double share_off;      // share of elements that differ at all
  std::int64_t mismatched;   // elements whose class (finite, NaN, +inf, -inf) differs
  std::int64_t worst_index;  // flat index of the worst element; -1 for an empty output
  double worst_seen;
  double worst_expected;
};

namespace detail {

inline bool same_class(double seen, double exact) {
  if (std::isnan(exact)) return std::isnan(seen);
  if (std::isinf(exact)) return seen == exact;
  return std::isfinite(seen);
}

// What a float can hold of the exact value: beyond its range the right answer is infinity.
inline double within_range(double exact, double largest) {
  if (std::isfinite(exact) && std::fabs(exact) > largest) return std::copysign(HUGE_VAL, exact);
  return exact;
}

inline double root_mean_square(const double* exact, std::size_t count, double largest) {
  // Dividing by the largest value first keeps the squares in range.
  double top = 0.0;
  std::size_t finite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = within_range(exact[i], largest);
    if (!std::isfinite(value)) continue;
    ++finite;
    top = std::fmax(top, std::fabs(value));
  }
  if (finite == 0 || top == 0.0) return 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = within_range(exact[i], largest);
    if (std::isfinite(value)) squares += (value / top) * (value / top);
  }
  return top * std::sqrt(squares / static_cast<double>(finite));
}

}  // namespace detail

// `largest` is the largest finite value of the output's type (infinity for integers).
template <typename T>
Comparison compare(const T* seen, const double* exact, std::size_t count, double largest) {
  Comparison result{};
  result.scale = std::fmax(detail::root_mean_square(exact, count, largest), std::numeric_limits<float>::min());
  result.worst_index = count ? 0 : -1;
  double error_squares = 0.0, exact_squares = 0.0, product = 0.0;
  std::size_t off = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(seen[i]);
    const double expected = detail::within_range(exact[i], largest);
    double error = 0.0;
    if (!detail::same_class(value, expected)) {
      ++result.mismatched;
      ++off;
      error = HUGE_VAL;
    } else if (std::isfinite(expected)) {
      const double difference = (value - expected) / result.scale;
      const double relative = expected / result.scale;
      off += difference != 0.0;
      error_squares += difference * difference;
      exact_squares += relative * relative;
      product += difference * relative;
      error = std::fabs(difference) / (std::fabs(relative) + 1.0);
    }
    if (i == 0 || error > result.element_error) {
      result.element_error = error;
      result.worst_index = static_cast<std::int64_t>(i);
      result.worst_seen = value;
      result.worst_expected = expected;
    }
  }
  if (result.mismatched) {
    result.norm_error = HUGE_VAL;
  } else if (error_squares > 0.0) {
    // An output of zeros has no norm of its own; the scale (smallest normal float) stands in.
    result.norm_error = std::sqrt(error_squares / (exact_squares > 0.0 ? exact_squares : double(count)));
    if (exact_squares > 0.0) result.alignment = product / std::sqrt(error_squares * exact_squares);
  }
  result.share_off = count ? static_cast<double>(off) / static_cast<double>(count) : 0.0;
  return result;
}

}  // namespace judging
