// The plan's convolution step over three dimensions, plain or transposed; fewer dimensions have length 1. Every output
// is one sum in double, taken straight from the definition.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace emulator {

struct ConvolutionShape {
  using Lengths = std::array<std::int64_t, 3>;
  std::int64_t batch, channels, outputs, groups;
  bool transposed;
  Lengths input, window, output, stride, padding, dilation;
};

namespace convolution {

inline std::int64_t volume(const ConvolutionShape::Lengths& lengths) { return lengths[0] * lengths[1] * lengths[2]; }

// The input place that output place `to` and window place `tap` meet in along one dimension; -1 where there is none.
inline std::int64_t source(const ConvolutionShape& shape, int axis, std::int64_t to, std::int64_t tap) {
  const std::int64_t reach = tap * shape.dilation[axis];
  std::int64_t from = to * shape.stride[axis] - shape.padding[axis] + reach;
  if (shape.transposed) {
    from = to + shape.padding[axis] - reach;
    if (from < 0 || from % shape.stride[axis] != 0) return -1;
    from /= shape.stride[axis];
  }
  return from >= 0 && from < shape.input[axis] ? from : -1;
}

// x: channels of the output's group; weight: windows of the output, `weight_step` elements from channel to channel.
inline float one_output(const float* x, const float* weight, std::int64_t weight_step, const ConvolutionShape& shape,
                        const ConvolutionShape::Lengths& to) {
  const std::int64_t channels = shape.channels / shape.groups, plane = volume(shape.input);
  double sum = 0;
  for (std::int64_t a = 0; a < shape.window[0]; ++a) {
    const std::int64_t i = source(shape, 0, to[0], a);
    if (i < 0) continue;
    for (std::int64_t b = 0; b < shape.window[1]; ++b) {
      const std::int64_t j = source(shape, 1, to[1], b);
      if (j < 0) continue;
      for (std::int64_t c = 0; c < shape.window[2]; ++c) {
        const std::int64_t k = source(shape, 2, to[2], c);
        if (k < 0) continue;
        const float* from = x + (i * shape.input[1] + j) * shape.input[2] + k;
        const float* tap = weight + (a * shape.window[1] + b) * shape.window[2] + c;
        for (std::int64_t channel = 0; channel < channels; ++channel)
          sum += static_cast<double>(from[channel * plane]) * static_cast<double>(tap[channel * weight_step]);
      }
    }
  }
  return static_cast<float>(sum);
}

// weight: [outputs, channels / groups, window], or [channels, outputs / groups, window] where it is transposed.
inline void convolve(const float* x, const float* weight, float* out, const ConvolutionShape& shape) {
  const std::int64_t per_group = shape.outputs / shape.groups, channels = shape.channels / shape.groups;
  const std::int64_t taps = volume(shape.window), plane = volume(shape.input);
  for (std::int64_t n = 0; n < shape.batch; ++n)
    for (std::int64_t output = 0; output < shape.outputs; ++output) {
      const std::int64_t group = output / per_group;
      const float* own = x + (n * shape.channels + group * channels) * plane;
      const float* windows = shape.transposed
                                 ? weight + (group * channels * per_group + output % per_group) * taps
                                 : weight + output * channels * taps;
      const std::int64_t step = shape.transposed ? per_group * taps : taps;
      for (std::int64_t i = 0; i < shape.output[0]; ++i)
        for (std::int64_t j = 0; j < shape.output[1]; ++j)
          for (std::int64_t k = 0; k < shape.output[2]; ++k)
            *out++ = one_output(own, windows, step, shape, {i, j, k});
    }
}

}  // namespace convolution
}  // namespace emulator
