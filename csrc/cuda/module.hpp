// A loaded cubin: its kernels and global variables.
#pragma once
#include <string>
#include <utility>

#include "device.hpp"

namespace cuda {

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
  void allow_shared(const std::string& name, int bytes) const {
    const int result = device_->driver().function_set_attribute(function(name), kFunctionMaxDynamicShared, bytes);
    device_->check(result, "cuFuncSetAttribute");
  }

 private:
  DeviceOwner device_;
  Handle module_ = nullptr;
};

}  // namespace cuda
