// Statistics of paired timings: ratios in seven buckets, median of bucket means, 99 % interval. Free of CUDA.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace judging {

inline constexpr std::size_t kBuckets = 7;

// |median - mu| <= kCritical * s / sqrt(7) holds with probability 0.99 for seven normal values of sample deviation s.
// It plays the part of Student's t (3.707 at 6 degrees of freedom) for the median in place of the mean, and was found
// from 1e7 draws; tests/evaluator/judge/test_statistics.py draws again and checks the coverage.
inline constexpr double kCritical = 4.013;

struct Interval {
  double value;
  double low;
  double high;
};

inline double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("the median of no values is undefined; pass at least one");
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return 0.5 * (upper + *std::max_element(values.begin(), values.begin() + middle));
}

// Means of kBuckets consecutive runs of `values`, whose lengths differ by at most one. Consecutive, not interleaved:
// slow drift (clocks, temperature, other load) then shows as spread between buckets and widens the interval.
inline std::array<double, kBuckets> bucket_means(const std::vector<double>& values) {
  if (values.size() < kBuckets) {
    throw std::invalid_argument("seen " + std::to_string(values.size()) + " samples, expected at least 7 (one a bucket)");
  }
  std::array<double, kBuckets> means{};
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    const std::size_t begin = bucket * values.size() / kBuckets;
    const std::size_t end = (bucket + 1) * values.size() / kBuckets;
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];
    means[bucket] = sum / static_cast<double>(end - begin);
  }
  return means;
}

// Median of bucket means with its 99 % interval, on the scale of `values`.
inline Interval bucketed_interval(const std::vector<double>& values) {
  const auto means = bucket_means(values);
  double mean = 0.0;
  for (double m : means) mean += m / kBuckets;
  double squares = 0.0;
  for (double m : means) squares += (m - mean) * (m - mean);
  const double centre = median({means.begin(), means.end()});
  const double half = kCritical * std::sqrt(squares / (kBuckets - 1)) / std::sqrt(double(kBuckets));
  return {centre, centre - half, centre + half};
}

inline std::vector<double> logarithms(const std::vector<double>& values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (double v : values) {
    if (!(v > 0.0) || !std::isfinite(v)) {
      throw std::invalid_argument("seen a time of " + std::to_string(v) + ", expected positive finite times");
    }
    logs.push_back(std::log(v));
  }
  return logs;
}

// Typical time of one side, on logarithms like the ratio.
inline Interval time_interval(const std::vector<double>& times) {
  const Interval log = bucketed_interval(logarithms(times));
  return {std::exp(log.value), std::exp(log.low), std::exp(log.high)};
}

// Speed-up = reference over program, from times measured in turn. Work on logarithms, so that swapping the two sides
// gives exactly the reciprocal: a mean of plain ratios is above 1 for a program against itself.
inline Interval paired_interval(const std::vector<double>& reference, const std::vector<double>& program) {
  if (reference.size() != program.size()) {
    throw std::invalid_argument("seen " + std::to_string(reference.size()) + " reference times and " +
                                std::to_string(program.size()) + " program times, expected pairs");
  }
  std::vector<double> ratios = logarithms(reference);
  const std::vector<double> program_logs = logarithms(program);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] -= program_logs[i];
  const Interval log = bucketed_interval(ratios);
  return {std::exp(log.value), std::exp(log.low), std::exp(log.high)};
}

// The displayed speed-up: towards 1 to two decimals, so that rounding never flatters and never invents a slow-down.
inline double round_towards_one(double ratio) {
  if (!std::isfinite(ratio)) throw std::invalid_argument("a speed-up must be finite");
  // The nudge keeps 1.15 (stored as 1.1499...) at 1.15.
  return ratio >= 1.0 ? std::floor(ratio * 100.0 + 1e-9) / 100.0 : std::ceil(ratio * 100.0 - 1e-9) / 100.0;
}

}  // namespace judging
