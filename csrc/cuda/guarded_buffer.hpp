// Memory between pages that nobody may access.
#pragma once
#include <algorithm>
#include <utility>

#include "device.hpp"

namespace cuda {

// Memory of its own pages, whose end (guard right) or start (guard left) touches pages that nobody may access: a stray
// access is a fault of the device, not a silent read. The rest of its pages, `slack`, is for the owner to watch.
class GuardedBuffer {
 public:
  static constexpr std::size_t kAlignment = 16;  // a float4; the end of the buffer is at most 15 bytes before the guard
  static constexpr std::size_t kGuard = std::size_t{1} << 30;  // of addresses alone; a multiple of any page's size

  GuardedBuffer(DeviceOwner device, std::size_t bytes, bool right) : device_(std::move(device)), bytes_(bytes) {
    const Driver& driver = device_->driver();
    AllocationProperties properties;
    properties.location.id = device_->ordinal();
    std::size_t granularity = 0;
    device_->check(driver.allocation_granularity(&granularity, &properties, 0), "cuMemGetAllocationGranularity");
    mapped_bytes_ = (std::max<std::size_t>(bytes, 1) + granularity - 1) / granularity * granularity;
    reserved_bytes_ = mapped_bytes_ + 2 * kGuard;
    device_->check(driver.allocation_create(&allocation_, mapped_bytes_, &properties, 0), "cuMemCreate");
    try {
      device_->check(driver.address_reserve(&reserved_, reserved_bytes_, granularity, 0, 0), "cuMemAddressReserve");
      base_ = reserved_ + kGuard;
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

}  // namespace cuda
