// The CUDA driver, found by dlopen: the few functions that executing a plan takes, declared here so that no CUDA header
// is needed. Names and meanings are those of the driver API's reference; every call is checked but those that release.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "dynamic_library.hpp"

namespace cuda {

using DevicePointer = std::uint64_t;  // CUdeviceptr
using Handle = void*;                 // CUcontext, CUmodule, CUfunction, CUstream, CUevent, CUgraph, CUgraphExec
using AllocationHandle = unsigned long long;  // CUmemGenericAllocationHandle

// Enumerators of cuda.h that are used here.
constexpr int kSuccess = 0, kNotReady = 600;
constexpr int kMaxSharedPerBlockOptin = 97, kL2CacheBytes = 38, kCapabilityMajor = 75,
              kCapabilityMinor = 76, kMemoryClockKHz = 36, kMemoryBusBits = 37;  // CUdevice_attribute
constexpr int kFunctionMaxDynamicShared = 8;                                     // CUfunction_attribute
constexpr unsigned kStreamNonBlocking = 1, kCaptureRelaxed = 2;

// A driver call that failed. `code` is its CUresult; after some, such as a stray access, the context is lost for good.
struct DriverError : std::runtime_error {
  DriverError(const std::string& text, int result) : std::runtime_error(text), code(result) {}
  int code;
};

// CUmemAllocationProp, CUmemLocation and CUmemAccessDesc as cuda.h lays them out.
struct MemoryLocation {
  int type = 1;  // a device
  int id = 0;
};
struct AllocationProperties {
  int type = 1;  // pinned
  int requested_handle_types = 0;
  MemoryLocation location;
  void* win32_metadata = nullptr;
  struct {
    unsigned char compression_type = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
struct MemoryAccess {
  MemoryLocation location;
  int flags = 3;  // read and write
};

class Driver {
 public:
  // The process's one driver. Throws std::runtime_error where there is none, or no device.
  static const Driver& instance() {
    static const Driver driver;
    return driver;
  }

  void check(int result, const char* call) const {
    if (result == kSuccess) return;
    const char *name = nullptr, *text = nullptr;
    error_name_(result, &name);
    error_string_(result, &text);
    throw DriverError(std::string(call) + " failed: " + (name ? name : std::to_string(result)) +
                          (text ? std::string(" (") + text + ")" : ""),
                      result);
  }

  int (*device_get_count)(int*);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*primary_context_retain)(Handle*, int);
  int (*context_set_current)(Handle);
  int (*reset_persisting_l2)();
  int (*memory_info)(std::size_t*, std::size_t*);

  int (*module_load_data)(Handle*, const void*);
  int (*module_unload)(Handle);
  int (*module_function)(Handle*, Handle, const char*);
  int (*module_global)(DevicePointer*, std::size_t*, Handle, const char*);
  int (*function_set_attribute)(Handle, int, int);
  int (*launch_kernel)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                       void**);

  int (*memory_allocate)(DevicePointer*, std::size_t);
  int (*memory_free)(DevicePointer);
  int (*set_d8)(DevicePointer, unsigned char, std::size_t, Handle);
  int (*set_d16)(DevicePointer, unsigned short, std::size_t, Handle);
  int (*set_d32)(DevicePointer, unsigned, std::size_t, Handle);
  int (*set_2d_d32)(DevicePointer, std::size_t, unsigned, std::size_t, std::size_t, Handle);
  int (*copy_device_to_device)(DevicePointer, DevicePointer, std::size_t, Handle);

  int (*allocation_granularity)(std::size_t*, const AllocationProperties*, int);
  int (*allocation_create)(AllocationHandle*, std::size_t, const AllocationProperties*, unsigned long long);
  int (*allocation_release)(AllocationHandle);
  int (*address_reserve)(DevicePointer*, std::size_t, std::size_t, DevicePointer, unsigned long long);
  int (*address_free)(DevicePointer, std::size_t);
  int (*memory_map)(DevicePointer, std::size_t, std::size_t, AllocationHandle, unsigned long long);
  int (*memory_unmap)(DevicePointer, std::size_t);
  int (*memory_set_access)(DevicePointer, std::size_t, const MemoryAccess*, std::size_t);

  int (*stream_create)(Handle*, unsigned);
  int (*stream_query)(Handle);
  int (*stream_context)(Handle, Handle*);
  int (*stream_begin_capture)(Handle, unsigned);
  int (*stream_end_capture)(Handle, Handle*);
  int (*graph_instantiate)(Handle*, Handle, unsigned long long);
  int (*graph_launch)(Handle, Handle);
  int (*graph_destroy)(Handle);
  int (*graph_exec_destroy)(Handle);
  int (*event_create)(Handle*, unsigned);
  int (*event_record)(Handle, Handle);
  int (*event_elapsed_ms)(float*, Handle, Handle);
  int (*event_destroy)(Handle);

 private:
  Driver() : library_("libcuda.so.1") {
    int (*initialise)(unsigned);
    library_.find("cuInit", initialise);
    library_.find("cuGetErrorName", error_name_);
    library_.find("cuGetErrorString", error_string_);
    library_.find("cuDeviceGetCount", device_get_count);
    library_.find("cuDeviceGet", device_get);
    library_.find("cuDeviceGetName", device_name);
    library_.find("cuDeviceGetAttribute", device_attribute);
    library_.find("cuDevicePrimaryCtxRetain", primary_context_retain);
    library_.find("cuCtxSetCurrent", context_set_current);
    library_.find("cuCtxResetPersistingL2Cache", reset_persisting_l2);
    library_.find("cuMemGetInfo_v2", memory_info);
    library_.find("cuModuleLoadData", module_load_data);
    library_.find("cuModuleUnload", module_unload);
    library_.find("cuModuleGetFunction", module_function);
    library_.find("cuModuleGetGlobal_v2", module_global);
    library_.find("cuFuncSetAttribute", function_set_attribute);
    library_.find("cuLaunchKernel", launch_kernel);
    library_.find("cuMemAlloc_v2", memory_allocate);
    library_.find("cuMemFree_v2", memory_free);
    library_.find("cuMemsetD8Async", set_d8);
    library_.find("cuMemsetD16Async", set_d16);
    library_.find("cuMemsetD32Async", set_d32);
    library_.find("cuMemsetD2D32Async", set_2d_d32);
    library_.find("cuMemcpyDtoDAsync_v2", copy_device_to_device);
    library_.find("cuMemGetAllocationGranularity", allocation_granularity);
    library_.find("cuMemCreate", allocation_create);
    library_.find("cuMemRelease", allocation_release);
    library_.find("cuMemAddressReserve", address_reserve);
    library_.find("cuMemAddressFree", address_free);
    library_.find("cuMemMap", memory_map);
    library_.find("cuMemUnmap", memory_unmap);
    library_.find("cuMemSetAccess", memory_set_access);
    library_.find("cuStreamCreate", stream_create);
    library_.find("cuStreamQuery", stream_query);
    library_.find("cuStreamGetCtx", stream_context);
    library_.find("cuStreamBeginCapture_v2", stream_begin_capture);
    library_.find("cuStreamEndCapture", stream_end_capture);
    library_.find("cuGraphInstantiateWithFlags", graph_instantiate);
    library_.find("cuGraphLaunch", graph_launch);
    library_.find("cuGraphDestroy", graph_destroy);
    library_.find("cuGraphExecDestroy", graph_exec_destroy);
    library_.find("cuEventCreate", event_create);
    library_.find("cuEventRecord", event_record);
    library_.find("cuEventElapsedTime", event_elapsed_ms);
    library_.find("cuEventDestroy_v2", event_destroy);
    check(initialise(0), "cuInit");
  }

  DynamicLibrary library_;
  int (*error_name_)(int, const char**);
  int (*error_string_)(int, const char**);
};

}  // namespace cuda
