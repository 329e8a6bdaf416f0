// A compiled program on a GPU, as XLA, CuPy or PyTorch call it: its steps are queued on the caller's stream, on the
// caller's buffers. It allocates nothing, waits for nothing, and may be called by several threads at once.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cuda/driver.hpp"
#include "cuda/fill.hpp"

namespace calling {

// Bytes from the start of one of the caller's buffers: first the inputs, then the results, then scratch memory.
struct Place {
  std::size_t buffer;
  std::uint64_t offset;
};

struct LaunchStep {
  std::size_t module;
  std::string kernel;  // its name in the cubin
  std::array<unsigned, 3> grid, block;
  unsigned shared_bytes;
  std::vector<std::variant<Place, std::string>> arguments;  // an array, or a number's bytes
};
struct FillStep {
  Place to;
  std::string pattern;
  std::size_t count;
};
struct CopyStep {
  Place from, to;
  std::size_t bytes;
};
// What no driver call does: a library queues work of its own on the stream. Gets the addresses of the caller's buffers.
using CallStep = std::function<void(std::uintptr_t stream, const std::vector<cuda::DevicePointer>& buffers)>;
using Step = std::variant<LaunchStep, FillStep, CopyStep, CallStep>;

class CudaProgram {
 public:
  // `bytes`: of every input, then of every result and of the scratch memory. `has_globals`: kernels write to variables
  // of their modules, so that no two streams may share these.
  CudaProgram(std::vector<std::string> cubins, std::vector<std::size_t> bytes, bool has_globals)
      : cubins_(std::move(cubins)), bytes_(std::move(bytes)), has_globals_(has_globals) {}
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;
  // Modules are not unloaded: a stream, or a graph that a caller has recorded, may still use them.

  void add(Step step) { steps_.push_back(std::move(step)); }
  std::size_t steps() const { return steps_.size(); }
  const std::vector<std::size_t>& bytes() const { return bytes_; }

  // Queues steps [first, last) on `stream`. `buffers`: addresses in the order of `bytes()`. Throws cuda::DriverError.
  void queue(cuda::Handle stream, const std::vector<cuda::DevicePointer>& buffers, std::size_t first,
             std::size_t last) const {
    const Functions& functions = loaded(stream);
    const cuda::Driver& driver = cuda::Driver::instance();
    for (std::size_t i = first; i < std::min(last, steps_.size()); ++i) {
      if (const auto* launch = std::get_if<LaunchStep>(&steps_[i])) {
        queue_launch(driver, stream, *launch, functions[i], buffers);
      } else if (const auto* fill = std::get_if<FillStep>(&steps_[i])) {
        cuda::fill(driver, stream, at(fill->to, buffers), fill->pattern, fill->count);
      } else if (const auto* copy = std::get_if<CopyStep>(&steps_[i])) {
        if (copy->bytes == 0) continue;
        driver.check(driver.copy_device_to_device(at(copy->to, buffers), at(copy->from, buffers), copy->bytes, stream),
                     "cuMemcpyDtoD");
      } else if (const auto* call = std::get_if<CallStep>(&steps_[i])) {
        (*call)(reinterpret_cast<std::uintptr_t>(stream), buffers);
      }
    }
  }

 private:
  using Functions = std::vector<cuda::Handle>;  // of every step; null where it is no launch
  using Owner = std::pair<cuda::Handle, cuda::Handle>;  // context; stream, or null where all streams share the modules

  static cuda::DevicePointer at(const Place& place, const std::vector<cuda::DevicePointer>& buffers) {
    return buffers.at(place.buffer) + place.offset;
  }

  static void queue_launch(const cuda::Driver& driver, cuda::Handle stream, const LaunchStep& step,
                           cuda::Handle function, const std::vector<cuda::DevicePointer>& buffers) {
    std::vector<cuda::DevicePointer> addresses(step.arguments.size());
    std::vector<void*> arguments(step.arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (const auto* place = std::get_if<Place>(&step.arguments[i])) {
        addresses[i] = at(*place, buffers);
        arguments[i] = &addresses[i];
      } else {
        arguments[i] = const_cast<char*>(std::get<std::string>(step.arguments[i]).data());  // the driver only reads
      }
    }
    driver.check(driver.launch_kernel(function, step.grid[0], step.grid[1], step.grid[2], step.block[0], step.block[1],
                                      step.block[2], step.shared_bytes, stream, arguments.data(), nullptr),
                 "cuLaunchKernel");
  }

  // The kernels for `stream`, whose context is made the thread's own.
  const Functions& loaded(cuda::Handle stream) const {
    const cuda::Driver& driver = cuda::Driver::instance();
    cuda::Handle context = nullptr;
    driver.check(driver.stream_context(stream, &context), "cuStreamGetCtx");
    driver.check(driver.context_set_current(context), "cuCtxSetCurrent");
    const Owner owner{context, has_globals_ ? stream : nullptr};
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      const auto found = functions_.find(owner);
      if (found != functions_.end()) return *found->second;
    }
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    auto& entry = functions_[owner];
    if (entry == nullptr) entry = std::make_unique<Functions>(load_functions(driver));
    return *entry;
  }

  Functions load_functions(const cuda::Driver& driver) const {
    std::vector<cuda::Handle> modules;
    for (const std::string& cubin : cubins_) {
      modules.push_back(nullptr);
      driver.check(driver.module_load_data(&modules.back(), cubin.data()), "cuModuleLoadData");
    }
    Functions functions;
    std::map<cuda::Handle, unsigned> shared;  // the most that a kernel is launched with
    for (const Step& step : steps_) {
      functions.push_back(nullptr);
      const auto* launch = std::get_if<LaunchStep>(&step);
      if (launch == nullptr) continue;
      driver.check(driver.module_function(&functions.back(), modules.at(launch->module), launch->kernel.c_str()),
                   "cuModuleGetFunction");
      unsigned& most = shared[functions.back()];
      most = std::max(most, launch->shared_bytes);
    }
    for (const auto& [function, bytes] : shared) {
      if (bytes == 0) continue;
      const int result =
          driver.function_set_attribute(function, cuda::kFunctionMaxDynamicShared, static_cast<int>(bytes));
      driver.check(result, "cuFuncSetAttribute");
    }
    return functions;
  }

  std::vector<std::string> cubins_;
  std::vector<std::size_t> bytes_;
  bool has_globals_;
  std::vector<Step> steps_;
  mutable std::shared_mutex mutex_;
  mutable std::map<Owner, std::unique_ptr<Functions>> functions_;
};

}  // namespace calling
