// When to stop taking pairs: the interval is tight enough, or the time is spent. Free of CUDA.
#pragma once

#include <cstddef>

#include "judging/statistics.hpp"

namespace judging {

enum class Stop { kContinue, kTight, kOutOfTime };

struct StoppingRule {
  double width;           // relative half width of the 99 % interval that suffices, for example 0.01
  double budget_s;        // time that may be spent
  std::size_t min_pairs;  // never stop before; two a bucket, so that no bucket rests on a single sample
};

inline double relative_half_width(const Interval& interval) {
  return 0.5 * (interval.high - interval.low) / interval.value;
}

// `pairs` below kBuckets have no interval yet: `interval` is not read.
inline Stop should_stop(const StoppingRule& rule, std::size_t pairs, const Interval& interval, double spent_s) {
  if (pairs >= rule.min_pairs && pairs >= kBuckets && relative_half_width(interval) <= rule.width) return Stop::kTight;
  if (spent_s >= rule.budget_s && pairs >= kBuckets) return Stop::kOutOfTime;
  return Stop::kContinue;
}

}  // namespace judging
