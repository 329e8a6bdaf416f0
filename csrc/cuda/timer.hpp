// Times of work on the stream, between events.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "device.hpp"

namespace cuda {

// Times work on the device's stream by events. Before each piece of work the L2 cache is overwritten; that also keeps
// the stream busy while the host queues the work behind it, so that a graph's launch latency is not measured.
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
    used_ &= ~std::size_t{1};  // work that failed before its second event is forgotten
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
