// The plan's attention step: out = softmax(query key^T / sqrt(width)) value per head, a row at a time, sums in double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace emulator {

struct AttentionShape {
  std::size_t heads, tokens, sources, value_width, width;
  bool causal;
};

namespace attention {

// The weights of the first `seen` sources for one token; they add up to 1.
inline void weigh(const float* query, const float* keys, std::size_t seen, std::size_t width, double* weights) {
  double top = -std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < seen; ++s) {
    double dot = 0;
    for (std::size_t i = 0; i < width; ++i)
      dot += static_cast<double>(query[i]) * static_cast<double>(keys[s * width + i]);
    weights[s] = dot / std::sqrt(static_cast<double>(width));
    top = std::max(top, weights[s]);
  }
  double sum = 0;
  for (std::size_t s = 0; s < seen; ++s) sum += weights[s] = std::exp(weights[s] - top);
  for (std::size_t s = 0; s < seen; ++s) weights[s] /= sum;
}

inline void attend(const float* query, const float* key, const float* value, float* out, const AttentionShape& shape) {
  std::vector<double> weights(shape.sources), sums(shape.value_width);
  for (std::size_t head = 0; head < shape.heads; ++head) {
    for (std::size_t token = 0; token < shape.tokens; ++token) {
      const std::size_t seen = shape.causal ? std::min(token + 1, shape.sources) : shape.sources;
      weigh(query, key, seen, shape.width, weights.data());
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t s = 0; s < seen; ++s)
        for (std::size_t i = 0; i < shape.value_width; ++i)
          sums[i] += weights[s] * static_cast<double>(value[s * shape.value_width + i]);
      for (double sum : sums) *out++ = static_cast<float>(sum);
      query += shape.width;
    }
    key += shape.sources * shape.width;
    value += shape.sources * shape.value_width;
  }
}

}  // namespace attention
}  // namespace emulator
