// Executes a tape on an arena, step by step.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "halves.hpp"
#include "launcher.hpp"
#include "tape.hpp"

namespace emulator {

class Executor {
 public:
  Executor(const Tape& tape, const Arena& arena, const Module& module, Launcher& launcher)
      : tape_(tape), arena_(arena), launcher_(launcher) {
    module.each_segment([this](char* start, std::size_t bytes) { variables_.push_back({start, bytes}); });
    for (std::size_t i = 0; i < tape.kernels; ++i) {
      kernels_.push_back(module.kernel(i));
      if (kernels_.back() == nullptr) throw std::runtime_error("the object lacks kernel " + std::to_string(i));
    }
  }

  void run(Order order, std::uint64_t seed, bool guard_left) {
    order_ = order, seed_ = seed, guard_left_ = guard_left;
    for (std::size_t i = 0; i < tape_.steps.size(); ++i) {
      current_step.store(static_cast<int>(i), std::memory_order_relaxed);
      std::visit([this](const auto& step) { execute(step); }, tape_.steps[i]);
    }
    current_step.store(-1, std::memory_order_relaxed);
  }

 private:
  char* at(const Place& place) const { return arena_.data(place.buffer, guard_left_) + place.offset; }

  void execute(const LaunchStep& step) {
    values_.clear();
    pointers_.clear();
    for (const auto& argument : step.arguments)
      values_.push_back(argument.is_pointer ? reinterpret_cast<std::uint64_t>(at(argument.place)) : argument.value);
    for (std::uint64_t& value : values_) pointers_.push_back(&value);
    Launch launch;
    launch.kernel = kernels_.at(step.kernel);
    launch.grid = step.grid, launch.block = step.block;
    launch.shared_bytes = step.shared_bytes;
    launch.arguments = pointers_.data();
    launch.order = order_;
    launch.seed = seed_ + static_cast<std::uint64_t>(current_step.load(std::memory_order_relaxed));
    launch.guard_left = guard_left_;
    if (order_ != Order::kRandom) return launcher_.run(launch);
    std::vector<Bytes> written = written_by(step);
    written.insert(written.end(), variables_.begin(), variables_.end());
    Halves(launcher_, written).run(launch);
  }

  // The buffers that a launch is given, each once.
  std::vector<Bytes> written_by(const LaunchStep& step) const {
    std::vector<Bytes> found;
    for (const auto& argument : step.arguments) {
      if (!argument.is_pointer) continue;
      const std::size_t buffer = argument.place.buffer;
      char* start = arena_.data(buffer, guard_left_);
      const auto same = [start](const Bytes& each) { return each.start == start; };
      if (std::none_of(found.begin(), found.end(), same)) found.push_back({start, tape_.buffers[buffer].bytes});
    }
    return found;
  }

  template <class T>
  static void fill(char* to, std::uint64_t elements, std::uint64_t bits) {
    std::fill_n(reinterpret_cast<T*>(to), elements, static_cast<T>(bits));
  }
  void execute(const FillStep& step) {
    char* to = at(step.to);
    switch (step.element_bytes) {
      case 1: return fill<std::uint8_t>(to, step.elements, step.bits);
      case 2: return fill<std::uint16_t>(to, step.elements, step.bits);
      case 4: return fill<std::uint32_t>(to, step.elements, step.bits);
      default: return fill<std::uint64_t>(to, step.elements, step.bits);
    }
  }

  void execute(const CopyStep& step) { std::memcpy(at(step.to), at(step.from), step.bytes); }

  void execute(const MatmulStep& step) {
    const void *a = at(step.a), *b = at(step.b);
    void* out = at(step.out);
    switch (step.type) {
      case NumberType::kFloat32: return matmul::multiply_all<float, float>(a, b, out, step.shape);
      case NumberType::kFloat64: return matmul::multiply_all<double, double>(a, b, out, step.shape);
      case NumberType::kFloat16: return matmul::multiply_all<matmul::Half, float>(a, b, out, step.shape);
      case NumberType::kBfloat16: return matmul::multiply_all<matmul::Bfloat16, float>(a, b, out, step.shape);
    }
  }

  void execute(const ConvolutionStep& step) {
    convolution::convolve(numbers(step.x), numbers(step.weight), numbers(step.out), step.shape);
  }

  void execute(const AttentionStep& step) {
    attention::attend(numbers(step.query), numbers(step.key), numbers(step.value), numbers(step.out), step.shape);
  }

  float* numbers(const Place& place) const { return reinterpret_cast<float*>(at(place)); }

  const Tape& tape_;
  const Arena& arena_;
  Launcher& launcher_;
  std::vector<KernelEntry> kernels_;
  std::vector<Bytes> variables_;  // of the module
  std::vector<std::uint64_t> values_;
  std::vector<void*> pointers_;
  Order order_ = Order::kForward;
  std::uint64_t seed_ = 0;
  bool guard_left_ = false;
};

}  // namespace emulator
