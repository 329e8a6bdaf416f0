// Whether what a tape's steps touch lies inside its buffers. The evaluator writes tapes from plans that it has checked,
// so a tape that fails here is a fault of ours, and is told from one of the program's: whose kernels may do anything.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <variant>

#include "tape.hpp"

namespace emulator {

class TapeCheck {
 public:
  // Throws with the number of the step that does not fit.
  static void all(const Tape& tape) {
    TapeCheck check(tape);
    for (std::size_t i = 0; i < tape.buffers.size(); ++i) {
      const BufferSpec& spec = tape.buffers[i];
      if (spec.region_bytes == 0 || spec.region_bytes > kMost || spec.bytes > kMost ||
          ((spec.bytes + 15) & ~15ull) > spec.region_bytes)
        throw std::runtime_error("the tape's buffer " + std::to_string(i) + " does not fit its pages");
    }
    for (const Step& step : tape.steps) {
      std::visit([&check](const auto& each) { check.step(each); }, step);
      ++check.number_;
    }
  }

 private:
  using Number = unsigned __int128;                 // holds any product of three checked counts
  static constexpr std::uint64_t kMost = 1ull << 40;  // elements or bytes of anything
  static constexpr std::uint64_t kMostThreads = 1024, kMostShared = 227 * 1024;

  explicit TapeCheck(const Tape& tape) : tape_(tape) {}

  void require(bool holds, const char* what) const {
    if (!holds) throw std::runtime_error("step " + std::to_string(number_) + " of the tape: " + what);
  }
  void inside(const Place& place, Number elements, std::uint64_t element_bytes) const {
    const std::uint64_t bytes = tape_.buffers[place.buffer].bytes;
    require(place.offset <= bytes && elements <= (bytes - place.offset) / element_bytes, "leaves a buffer");
  }
  Number product(std::initializer_list<std::uint64_t> counts) const {
    Number result = 1;
    for (const std::uint64_t count : counts) {
      require(count <= kMost, "has an enormous count");
      result *= count;
      require(result <= kMost, "has an enormous count");
    }
    return result;
  }

  void step(const LaunchStep& launch) const {
    const dim3 &grid = launch.grid, &block = launch.block;
    require(launch.kernel < tape_.kernels, "launches no kernel");
    require(grid.x >= 1 && grid.x <= 0x7fffffff && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535,
            "has a wrong grid");
    require(block.x >= 1 && block.y >= 1 && block.z >= 1 && product({block.x, block.y, block.z}) <= kMostThreads,
            "has a wrong block");
    require(launch.shared_bytes <= kMostShared, "has too much shared memory");
    for (const auto& argument : launch.arguments)
      if (argument.is_pointer) inside(argument.place, 0, 1);
  }

  void step(const FillStep& fill) const {
    const std::uint64_t width = fill.element_bytes;
    require(width == 1 || width == 2 || width == 4 || width == 8, "fills elements of a wrong width");
    inside(fill.to, fill.elements, width);
  }

  void step(const CopyStep& copy) const {
    inside(copy.from, copy.bytes, 1);
    inside(copy.to, copy.bytes, 1);
  }

  void step(const MatmulStep& matmul) const {
    require(matmul.type <= NumberType::kBfloat16, "has an unknown number type");
    const std::uint64_t width =
        matmul.type == NumberType::kFloat64 ? 8 : matmul.type == NumberType::kFloat32 ? 4 : 2;
    const MatmulShape& shape = matmul.shape;
    const Number outputs = product({shape.batch, shape.m, shape.n});
    product({shape.k, 1});
    inside(matmul.out, outputs, width);
    if (outputs == 0 || shape.k == 0) return;
    inside(matmul.a, reach({shape.batch, shape.a_stride, shape.m, shape.a_down, shape.k, shape.a_across}), width);
    inside(matmul.b, reach({shape.batch, shape.b_stride, shape.k, shape.b_down, shape.n, shape.b_across}), width);
  }

  // Elements up to the last that is read, for counts that each have a stride.
  Number reach(const std::uint64_t (&pairs)[6]) const {
    Number last = 0;
    for (int i = 0; i < 6; i += 2) last += product({pairs[i] - 1, pairs[i + 1]});
    return last + 1;
  }

  void step(const ConvolutionStep& convolution) const {
    const ConvolutionShape& shape = convolution.shape;
    require(shape.groups >= 1, "has no groups");
    for (int axis = 0; axis < 3; ++axis)
      require(shape.stride[axis] >= 1 && shape.dilation[axis] >= 1 && small(shape.stride[axis]) &&
                  small(shape.dilation[axis]) && small(shape.padding[axis]),
              "has a wrong stride, dilation or padding");
    require(shape.channels % shape.groups == 0 && shape.outputs % shape.groups == 0, "has channels that do not fit");
    inside(convolution.x, product({count(shape.batch), count(shape.channels), volume(shape.input)}), sizeof(float));
    inside(convolution.out, product({count(shape.batch), count(shape.outputs), volume(shape.output)}), sizeof(float));
    const std::uint64_t windows = count(shape.outputs) / count(shape.groups);
    inside(convolution.weight, product({windows, count(shape.channels), volume(shape.window)}), sizeof(float));
  }

  static bool small(std::int64_t length) { return length >= -(1ll << 31) && length <= 1ll << 31; }
  std::uint64_t count(std::int64_t value) const {
    require(value >= 0, "has a negative count");
    return static_cast<std::uint64_t>(value);
  }
  std::uint64_t volume(const ConvolutionShape::Lengths& lengths) const {
    return static_cast<std::uint64_t>(product({count(lengths[0]), count(lengths[1]), count(lengths[2])}));
  }

  void step(const AttentionStep& attention) const {
    const AttentionShape& shape = attention.shape;
    inside(attention.query, product({shape.heads, shape.tokens, shape.width}), sizeof(float));
    inside(attention.key, product({shape.heads, shape.sources, shape.width}), sizeof(float));
    inside(attention.value, product({shape.heads, shape.sources, shape.value_width}), sizeof(float));
    inside(attention.out, product({shape.heads, shape.tokens, shape.value_width}), sizeof(float));
  }

  const Tape& tape_;
  std::size_t number_ = 0;
};

}  // namespace emulator
