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

inline constexpr std::size_t kLanes = 4;  // independent sums, so that the compiler may use vectors without fast-math
inline constexpr std::size_t kBlock = 128 * kLanes;

struct Sums {
  double error_squares = 0.0, exact_squares = 0.0, product = 0.0;  // in units of the scale
  std::size_t off = 0;
};

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

// Error of one element, infinite where its class differs.
inline double element_error(double seen, double expected, double inverse_scale) {
  if (!same_class(seen, expected)) return HUGE_VAL;
  if (!std::isfinite(expected)) return 0.0;
  return std::fabs((seen - expected) * inverse_scale) / (std::fabs(expected * inverse_scale) + 1.0);
}

inline double root_mean_square(const double* exact, std::size_t count, double largest) {
  double squares = 0.0, top = 0.0;
  std::size_t finite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(exact[i]);
    const bool counts = magnitude <= largest && magnitude <= std::numeric_limits<double>::max();  // false for NaN
    const double value = counts ? magnitude : 0.0;
    finite += counts;
    squares += value * value;
    top = value > top ? value : top;
  }
  if (finite == 0 || top == 0.0) return 0.0;
  if (std::isnormal(squares) && squares < 1e300) return std::sqrt(squares / static_cast<double>(finite));
  // Squares left the range of double, so only a float64 output gets here: divide by the largest value first.
  squares = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = within_range(exact[i], largest) / top;
    if (std::isfinite(value)) squares += value * value;
  }
  return top * std::sqrt(squares / static_cast<double>(finite));
}

// Whole blocks of ordinary numbers. False, with nothing added, where any element is NaN, infinite or out of range.
template <typename T>
bool add_block(const T* seen, const double* exact, double largest, double inverse_scale, Sums& sums, double& worst) {
  double error_squares[kLanes] = {}, exact_squares[kLanes] = {}, product[kLanes] = {}, top[kLanes] = {};
  double reach[kLanes] = {};
  std::uint64_t off[kLanes] = {};
  for (std::size_t i = 0; i < kBlock; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double expected = exact[i + lane];
      const double difference = (static_cast<double>(seen[i + lane]) - expected) * inverse_scale;
      const double relative = expected * inverse_scale;
      const double magnitude = std::fabs(expected);
      const double error = std::fabs(difference) / (std::fabs(relative) + 1.0);
      error_squares[lane] += difference * difference;
      exact_squares[lane] += relative * relative;
      product[lane] += difference * relative;
      off[lane] += difference != 0.0;
      top[lane] = error > top[lane] ? error : top[lane];
      reach[lane] = magnitude > reach[lane] ? magnitude : reach[lane];
    }
  }
  Sums block;
  double block_worst = 0.0, farthest = 0.0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    block.error_squares += error_squares[lane];
    block.exact_squares += exact_squares[lane];
    block.product += product[lane];
    block.off += off[lane];
    block_worst = std::fmax(block_worst, top[lane]);
    farthest = std::fmax(farthest, reach[lane]);
  }
  if (!std::isfinite(block.error_squares + block.exact_squares) || farthest > largest) return false;
  sums.error_squares += block.error_squares;
  sums.exact_squares += block.exact_squares;
  sums.product += block.product;
  sums.off += block.off;
  worst = block_worst;
  return true;
}

}  // namespace detail

// `largest` is the largest finite value of the output's type (infinity for integers); `scale` that of the exact values
// where an earlier comparison found it, else 0.
template <typename T>
Comparison compare(const T* seen, const double* exact, std::size_t count, double largest, double scale) {
  using detail::kBlock;
  Comparison result{};
  if (scale <= 0.0) scale = detail::root_mean_square(exact, count, largest);
  result.scale = std::fmax(scale, std::numeric_limits<float>::min());
  result.worst_index = -1;
  const double inverse_scale = 1.0 / result.scale;
  detail::Sums sums;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = begin + kBlock < count ? begin + kBlock : count;
    double worst = 0.0;
    const bool ordinary = end - begin == kBlock && detail::add_block(seen + begin, exact + begin, largest, inverse_scale,
                                                                     sums, worst);
    if (ordinary && begin > 0 && worst <= result.element_error) continue;
    for (std::size_t i = begin; i < end; ++i) {
      const double value = static_cast<double>(seen[i]);
      const double expected = detail::within_range(exact[i], largest);
      const double error = detail::element_error(value, expected, inverse_scale);
      if (result.worst_index < 0 || error > result.element_error) {
        result.element_error = error;
        result.worst_index = static_cast<std::int64_t>(i);
        result.worst_seen = value;
        result.worst_expected = expected;
      }
      if (ordinary) continue;
      result.mismatched += std::isinf(error);
      sums.off += error != 0.0;
      if (std::isinf(error) || !std::isfinite(expected)) continue;
      const double difference = (value - expected) * inverse_scale;
      const double relative = expected * inverse_scale;
      sums.error_squares += difference * difference;
      sums.exact_squares += relative * relative;
      sums.product += difference * relative;
    }
  }
  if (result.mismatched) {
    result.norm_error = HUGE_VAL;
  } else if (sums.error_squares > 0.0) {
    // An output of zeros has no norm of its own; the scale (smallest normal float) stands in.
    const bool zeros = !(sums.exact_squares > 0.0);
    result.norm_error = std::sqrt(sums.error_squares / (zeros ? static_cast<double>(count) : sums.exact_squares));
    if (!zeros) result.alignment = sums.product / std::sqrt(sums.error_squares * sums.exact_squares);
  }
  result.share_off = count ? static_cast<double>(sums.off) / static_cast<double>(count) : 0.0;
  return result;
}

}  // namespace judging
