// The plan as a flat list of 64-bit words, written by evaluator/devices/tape.py.
//   magic, buffers, kernels, steps
//   per buffer: file offset, region bytes, bytes
//   per step:   kind, then
//     1 launch: kernel, grid x y z, block x y z, dynamic shared bytes, arguments n, then n times (is pointer, a, b):
//               a pointer is (1, buffer, byte offset), a value (0, its bytes as a word, 0)
//     2 fill:   buffer, byte offset, elements, bytes of an element, its bits
//     3 copy:   source buffer, byte offset, target buffer, byte offset, bytes
//     4 matmul: number type, then (buffer, offset) of a, b and out, batch, m, n, k, a stride, b stride, elements between
//               rows and between columns of a, of b
//     5 convolution: (buffer, offset) of x, weight and out, batch, channels, outputs, groups, whether transposed, then
//               three words each of input, window, output, stride, padding and dilation
//     6 attention: (buffer, offset) of query, key, value and out, heads, tokens, sources, value width, width, whether
//               causal
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <variant>
#include <vector>

#include "arena.hpp"
#include "attention.hpp"
#include "convolution.hpp"
#include "include/emulator/abi.hpp"
#include "matmul.hpp"

namespace emulator {

constexpr std::uint64_t kTapeMagic = 0x3145504154554d45;  // "EMUTAPE1"

struct Place {
  std::size_t buffer;
  std::uint64_t offset;  // bytes
};

struct LaunchStep {
  std::size_t kernel;
  dim3 grid, block;
  std::size_t shared_bytes;
  struct Argument {
    bool is_pointer;
    std::uint64_t value;  // of a number
    Place place;          // of a pointer
  };
  std::vector<Argument> arguments;
};

struct FillStep {
  Place to;
  std::uint64_t elements, element_bytes, bits;
};

struct CopyStep {
  Place from, to;
  std::uint64_t bytes;
};

enum class NumberType : std::uint64_t { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBfloat16 = 3 };

struct MatmulStep {
  NumberType type;
  Place a, b, out;
  MatmulShape shape;
};

struct ConvolutionStep {
  Place x, weight, out;
  ConvolutionShape shape;
};

struct AttentionStep {
  Place query, key, value, out;
  AttentionShape shape;
};

using Step = std::variant<LaunchStep, FillStep, CopyStep, MatmulStep, ConvolutionStep, AttentionStep>;

struct Tape {
  std::vector<BufferSpec> buffers;
  std::size_t kernels = 0;
  std::vector<Step> steps;

  unsigned most_block_threads() const {
    unsigned most = 0;
    for (const Step& step : steps)
      if (const auto* launch = std::get_if<LaunchStep>(&step))
        most = std::max(most, launch->block.x * launch->block.y * launch->block.z);
    return most;
  }
};

class TapeReader {
 public:
  TapeReader(const std::uint64_t* words, std::size_t count) : words_(words), count_(count) {}

  Tape read() {
    if (next() != kTapeMagic) throw std::runtime_error("not a tape of this version");
    Tape tape;
    const std::uint64_t buffers = next();
    tape.kernels = next();
    const std::uint64_t steps = next();
    for (std::uint64_t i = 0; i < buffers; ++i) {
      const std::uint64_t offset = next(), region = next(), bytes = next();
      tape.buffers.push_back({offset, region, bytes});
    }
    buffers_ = buffers;
    for (std::uint64_t i = 0; i < steps; ++i) tape.steps.push_back(step());
    return tape;
  }

 private:
  std::uint64_t next() {
    if (at_ >= count_) throw std::runtime_error("the tape ends early");
    return words_[at_++];
  }
  Place place() {
    const std::uint64_t buffer = next(), offset = next();
    if (buffer >= buffers_) throw std::runtime_error("the tape names a buffer that does not exist");
    return {buffer, offset};
  }
  dim3 extent() {
    const unsigned x = extent_along(), y = extent_along(), z = extent_along();
    return {x, y, z};
  }
  unsigned extent_along() {
    const std::uint64_t value = next();
    if (value > 0xffffffffu) throw std::runtime_error("the tape has an extent of more than 32 bits");
    return static_cast<unsigned>(value);
  }

  Step step() {
    switch (next()) {
      case 1: return launch();
      case 2: {
        FillStep fill{place(), 0, 0, 0};
        fill.elements = next(), fill.element_bytes = next(), fill.bits = next();
        return fill;
      }
      case 3: {
        const Place from = place(), to = place();
        return CopyStep{from, to, next()};
      }
      case 4: return product();
      case 5: return convolution();
      case 6: return attention();
      default: throw std::runtime_error("the tape has a step of unknown kind");
    }
  }

  Step launch() {
    LaunchStep step{};
    step.kernel = next();
    step.grid = extent();
    step.block = extent();
    step.shared_bytes = next();
    const std::uint64_t arguments = next();
    for (std::uint64_t i = 0; i < arguments; ++i) {
      if (next() == 1) {
        step.arguments.push_back({true, 0, place()});
      } else {
        step.arguments.push_back({false, next(), {0, 0}});
        next();
      }
    }
    return step;
  }

  Step product() {
    MatmulStep step{};
    step.type = static_cast<NumberType>(next());
    step.a = place(), step.b = place(), step.out = place();
    MatmulShape& shape = step.shape;
    shape.batch = next(), shape.m = next(), shape.n = next(), shape.k = next();
    shape.a_stride = next(), shape.b_stride = next();
    shape.a_down = next(), shape.a_across = next(), shape.b_down = next(), shape.b_across = next();
    return step;
  }

  Step convolution() {
    ConvolutionStep step{};
    step.x = place(), step.weight = place(), step.out = place();
    ConvolutionShape& shape = step.shape;
    for (std::int64_t* count : {&shape.batch, &shape.channels, &shape.outputs, &shape.groups})
      *count = static_cast<std::int64_t>(next());
    shape.transposed = next() != 0;
    for (auto* lengths : {&shape.input, &shape.window, &shape.output, &shape.stride, &shape.padding, &shape.dilation})
      for (std::int64_t& length : *lengths) length = static_cast<std::int64_t>(next());
    return step;
  }

  Step attention() {
    AttentionStep step{};
    step.query = place(), step.key = place(), step.value = place(), step.out = place();
    AttentionShape& shape = step.shape;
    shape.heads = next(), shape.tokens = next(), shape.sources = next();
    shape.value_width = next(), shape.width = next();
    shape.causal = next() != 0;
    return step;
  }

  const std::uint64_t* words_;
  std::size_t count_, at_ = 0, buffers_ = 0;
};

}  // namespace emulator
