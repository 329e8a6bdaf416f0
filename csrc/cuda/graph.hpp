#pragma once
#include <utility>

#include "device.hpp"

namespace cuda {

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

  void launch() const {
    device_->check(device_->driver().graph_launch(executable_, device_->stream()), "cuGraphLaunch");
  }

 private:
  DeviceOwner device_;
  Handle executable_ = nullptr;
};

}  // namespace cuda
