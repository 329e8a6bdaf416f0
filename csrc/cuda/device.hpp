// One GPU as the executor uses it: the primary context (shared with CuPy), one stream, and what lives in it. Every
// resource has an owner that gives it back; a context that a program has broken is only ever left, never repaired.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver.hpp"

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
  int driver_version() const {
    int version = 0;
    driver_.check(driver_.driver_version(&version), "cuDriverGetVersion");
    return version;
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
    if (count == 0) return;
    std::uint32_t words[2] = {};
    std::memcpy(words, pattern.data(), std::min<std::size_t>(pattern.size(), sizeof words));
    switch (pattern.size()) {
      case 1: return check(driver_.set_d8(address, static_cast<unsigned char>(words[0]), count, stream_), "cuMemsetD8");
      case 2:
        return check(driver_.set_d16(address, static_cast<unsigned short>(words[0]), count, stream_), "cuMemsetD16");
      case 4: return check(driver_.set_d32(address, words[0], count, stream_), "cuMemsetD32");
      case 8:  // low and high halves as two columns of a table that is two words wide
        check(driver_.set_2d_d32(address, 8, words[0], 1, count, stream_), "cuMemsetD2D32");
        return check(driver_.set_2d_d32(address + 4, 8, words[1], 1, count, stream_), "cuMemsetD2D32");
      default: throw std::invalid_argument("a pattern has 1, 2, 4 or 8 bytes, not " + std::to_string(pattern.size()));
    }
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

  void begin_capture() const { check(driver_.stream_begin_capture(stream_, kCaptureRelaxed), "cuStreamBeginCapture"); }

  void check(int result, const char* call) const { driver_.check(result, call); }
  const Driver& driver() const { return driver_; }

 private:
  const Driver& driver_;
  int device_ = 0;
  Handle context_ = nullptr, stream_ = nullptr;
};

using DeviceOwner = std::shared_ptr<const Device>;

// Memory of its own pages, whose end (guard right) or start (guard left) touches pages that nobody may access: a stray
// access is a fault of the device, not a silent read. The rest of its pages, `slack`, is for the owner to watch.
class GuardedBuffer {
 public:
  static constexpr std::size_t kAlignment = 16;  // a float4; the end of the buffer is at most 15 bytes before the guard

  GuardedBuffer(DeviceOwner device, std::size_t bytes, bool right) : device_(std::move(device)), bytes_(bytes) {
    const Driver& driver = device_->driver();
    AllocationProperties properties;
    properties.location.id = device_->ordinal();
    std::size_t granularity = 0;
    device_->check(driver.allocation_granularity(&granularity, &properties, 0), "cuMemGetAllocationGranularity");
    mapped_bytes_ = (std::max<std::size_t>(bytes, 1) + granularity - 1) / granularity * granularity;
    reserved_bytes_ = mapped_bytes_ + 2 * granularity;
    device_->check(driver.allocation_create(&allocation_, mapped_bytes_, &properties, 0), "cuMemCreate");
    try {
      device_->check(driver.address_reserve(&reserved_, reserved_bytes_, granularity, 0, 0), "cuMemAddressReserve");
      base_ = reserved_ + granularity;
      device_->check(driver.memory_map(base_, mapped_bytes_, 0, allocation_, 0), "cuMemMap");
      is_mapped_ = true;
      MemoryAccess access;
      access.location.id = device_->ordinal();
      device_->check(driver.memory_set_access(base_, mapped_bytes_, &access, 1), "cuMemSetAccess");
    } catch (...) {
      release();
      throw;
    }
    const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    address_ = right ? base_ + mapped_bytes_ - whole : base_;
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { release(); }

  DevicePointer address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  // (address, bytes) of the mapped pages before and behind the buffer.
  std::pair<DevicePointer, std::size_t> before() const { return {base_, address_ - base_}; }
  std::pair<DevicePointer, std::size_t> behind() const {
    return {address_ + bytes_, base_ + mapped_bytes_ - address_ - bytes_};
  }

 private:
  void release() {  // errors are of no use here: after a fault of the device every call fails
    const Driver& driver = device_->driver();
    if (is_mapped_) driver.memory_unmap(base_, mapped_bytes_);
    if (reserved_ != 0) driver.address_free(reserved_, reserved_bytes_);
    driver.allocation_release(allocation_);
  }

  DeviceOwner device_;
  std::size_t bytes_, mapped_bytes_ = 0, reserved_bytes_ = 0;
  AllocationHandle allocation_ = 0;
  DevicePointer reserved_ = 0, base_ = 0, address_ = 0;
  bool is_mapped_ = false;
};

class Module {
 public:
  Module(DeviceOwner device, const std::string& cubin) : device_(std::move(device)) {
    device_->check(device_->driver().module_load_data(&module_, cubin.data()), "cuModuleLoadData");
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() { device_->driver().module_unload(module_); }

  Handle function(const std::string& name) const {
    Handle found = nullptr;
    device_->check(device_->driver().module_function(&found, module_, name.c_str()), "cuModuleGetFunction");
    return found;
  }
  // Address and size of a global variable.
  std::pair<DevicePointer, std::size_t> global(const std::string& name) const {
    DevicePointer address = 0;
    std::size_t bytes = 0;
    device_->check(device_->driver().module_global(&address, &bytes, module_, name.c_str()), "cuModuleGetGlobal");
    return {address, bytes};
  }
  int attribute(const std::string& name, int which) const {
    int value = 0;
    device_->check(device_->driver().function_get_attribute(&value, which, function(name)), "cuFuncGetAttribute");
    return value;
  }
  void allow_shared(const std::string& name, int bytes) const {
    const int result = device_->driver().function_set_attribute(function(name), kFunctionMaxDynamicShared, bytes);
    device_->check(result, "cuFuncSetAttribute");
  }

 private:
  DeviceOwner device_;
  Handle module_ = nullptr;
};

// What was recorded on the device's stream, to be replayed by one call.
class Graph {
 public:
  // Ends the capture that `device->begin_capture()` began.
  explicit Graph(DeviceOwner device) : device_(std::move(device)) {
    const Driver& driver = device_->driver();
    Handle recorded = nullptr;
    device_->check(driver.stream_end_capture(device_->stream(), &recorded), "cuStreamEndCapture");
    const int result = driver.graph_instantiate(&executable_, recorded, 0);
    driver.graph_destroy(recorded);
    device_->check(result, "cuGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { device_->driver().graph_exec_destroy(executable_); }

  void launch() const { device_->check(device_->driver().graph_launch(executable_, device_->stream()), "cuGraphLaunch"); }

 private:
  DeviceOwner device_;
  Handle executable_ = nullptr;
};

// Times work on the device's stream by events. Before each piece of work the L2 cache is overwritten; that also keeps
// the stream busy while the host queues the work behind it, so that no launch latency is measured.
class Timer {
 public:
  explicit Timer(DeviceOwner device) : device_(std::move(device)) {
    flush_bytes_ = 2 * static_cast<std::size_t>(std::max(device_->attribute(kL2CacheBytes), 1 << 20));
    device_->check(device_->driver().memory_allocate(&flush_, flush_bytes_), "cuMemAlloc");
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    const Driver& driver = device_->driver();
    driver.memory_free(flush_);
    for (Handle event : events_) driver.event_destroy(event);
  }

  // Queues a flush and the event before the work.
  void start() {
    const Driver& driver = device_->driver();
    device_->check(driver.reset_persisting_l2(), "cuCtxResetPersistingL2Cache");
    device_->check(driver.set_d32(flush_, ++flushes_, flush_bytes_ / 4, device_->stream()), "cuMemsetD32");
    record();
  }
  // Queues the event behind the work.
  void stop() { record(); }

  // Waits, and gives the microseconds of each piece of work since the last call.
  std::vector<double> collect(double deadline_s) {
    device_->wait(deadline_s);
    std::vector<double> times_us;
    for (std::size_t i = 0; i + 1 < used_; i += 2) {
      float ms = 0;
      device_->check(device_->driver().event_elapsed_ms(&ms, events_[i], events_[i + 1]), "cuEventElapsedTime");
      times_us.push_back(1e3 * static_cast<double>(ms));
    }
    used_ = 0;
    return times_us;
  }

 private:
  void record() {
    if (used_ == events_.size()) {
      Handle event = nullptr;
      device_->check(device_->driver().event_create(&event, 0), "cuEventCreate");
      events_.push_back(event);
    }
    device_->check(device_->driver().event_record(events_[used_++], device_->stream()), "cuEventRecord");
  }

  DeviceOwner device_;
  DevicePointer flush_ = 0;
  std::size_t flush_bytes_ = 0, used_ = 0;
  unsigned flushes_ = 0;
  std::vector<Handle> events_;
};

}  // namespace cuda
