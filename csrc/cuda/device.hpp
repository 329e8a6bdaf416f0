// One GPU as the executor uses it: the primary context, which CuPy shares, and one stream. Both live as long as the
// process; everything else has an owner that gives it back. A context that a program has broken is left, not repaired.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver.hpp"
#include "fill.hpp"

namespace cuda {

// The stream did not become idle in time; the kernel still runs, so the process is of no further use.
struct DeadlineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  explicit Device(int ordinal) : driver_(Driver::instance()) {
    int count = 0;
    driver_.check(driver_.device_get_count(&count), "cuDeviceGetCount");
    if (ordinal < 0 || ordinal >= count)
      throw std::runtime_error("there is no CUDA device " + std::to_string(ordinal) + ": this machine has " +
                               std::to_string(count));
    driver_.check(driver_.device_get(&device_, ordinal), "cuDeviceGet");
    // Never released: CuPy shares it, and a release at exit would race with CuPy's own.
    driver_.check(driver_.primary_context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
    use();
    driver_.check(driver_.stream_create(&stream_, kStreamNonBlocking), "cuStreamCreate");
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Makes the context current on the calling thread.
  void use() const { driver_.check(driver_.context_set_current(context_), "cuCtxSetCurrent"); }

  int ordinal() const { return device_; }
  Handle stream() const { return stream_; }
  int attribute(int which) const {
    int value = 0;
    driver_.check(driver_.device_attribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
  }
  std::string name() const {
    char text[256] = {};
    driver_.check(driver_.device_name(text, sizeof text - 1, device_), "cuDeviceGetName");
    return text;
  }
  std::pair<std::size_t, std::size_t> memory() const {
    std::size_t free_bytes = 0, total_bytes = 0;
    driver_.check(driver_.memory_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    return {free_bytes, total_bytes};
  }

  // Waits until the stream is idle, looking often at first. Throws DeadlineError, or DriverError for what a kernel did.
  void wait(double deadline_s) const {
    const auto begun = std::chrono::steady_clock::now();
    auto pause = std::chrono::microseconds(2);
    for (;;) {
      const int state = driver_.stream_query(stream_);
      if (state != kNotReady) return driver_.check(state, "cuStreamQuery");
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() > deadline_s)
        throw DeadlineError("still running after " + std::to_string(deadline_s) + " s");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(200));
    }
  }

  // Repeats the bytes of `pattern` (1, 2, 4 or 8 of them) `count` times from `address`.
  void fill(DevicePointer address, const std::string& pattern, std::size_t count) const {
    cuda::fill(driver_, stream_, address, pattern, count);
  }
  void copy(DevicePointer target, DevicePointer source, std::size_t bytes) const {
    if (bytes > 0) check(driver_.copy_device_to_device(target, source, bytes, stream_), "cuMemcpyDtoD");
  }
  // `arguments`: the bytes of each one, in the kernel's own types.
  void launch(Handle function, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
              unsigned shared_bytes, std::vector<std::string> arguments) const {
    std::vector<void*> slots;
    for (std::string& bytes : arguments) slots.push_back(bytes.data());
    check(driver_.launch_kernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes,
                                stream_, slots.data(), nullptr),
          "cuLaunchKernel");
  }

  // What is queued from now on is recorded, until a Graph or `abort_capture` ends it.
  void begin_capture() const { check(driver_.stream_begin_capture(stream_, kCaptureRelaxed), "cuStreamBeginCapture"); }

  void abort_capture() const noexcept {
    Handle recorded = nullptr;
    driver_.stream_end_capture(stream_, &recorded);
    if (recorded != nullptr) driver_.graph_destroy(recorded);
  }

  void check(int result, const char* call) const { driver_.check(result, call); }
  const Driver& driver() const { return driver_; }

 private:
  const Driver& driver_;
  int device_ = 0;
  Handle context_ = nullptr, stream_ = nullptr;
};

using DeviceOwner = std::shared_ptr<const Device>;

}  // namespace cuda
