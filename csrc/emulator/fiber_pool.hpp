// Stacks of fibers: reserved in slabs, each above a guard page, kept for the life of the OS thread that made them.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/mman.h>

#include "fiber_switch.hpp"
#include "reporting.hpp"

namespace emulator {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kStackBytes = 256 * 1024;  // of one CUDA thread: its local arrays and calls
constexpr std::size_t kStackGuardBytes = 16 * 1024;  // a multiple of every page size in use
constexpr std::size_t kFibersPerSlab = 32;

class FiberPool {
 public:
  FiberPool() = default;
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool() {
    for (char* slab : slabs_) munmap(slab, kFibersPerSlab * kStride);
  }

  int acquire() {
    if (free_.empty()) add_slab();
    const int fiber = free_.back();
    free_.pop_back();
    return fiber;
  }
  void release(int fiber) { free_.push_back(fiber); }

  // Stack tops are staggered: at one distance modulo the cache's way size they would all share a few cache sets.
  char* stack(int fiber) const {
    return slabs_[static_cast<std::size_t>(fiber) / kFibersPerSlab] +
           (static_cast<std::size_t>(fiber) % kFibersPerSlab) * kStride + kStackGuardBytes;
  }
  static std::size_t usable_bytes(int fiber) { return kStackBytes - (static_cast<std::size_t>(fiber) % 16) * 256; }

  bool is_guard(std::uintptr_t address) const {
    for (const char* slab : slabs_) {
      const auto start = reinterpret_cast<std::uintptr_t>(slab);
      if (address >= start && address < start + kFibersPerSlab * kStride)
        return (address - start) % kStride < kStackGuardBytes;
    }
    return false;
  }

 private:
  static constexpr std::size_t kStride = kStackBytes + kStackGuardBytes;

  void add_slab() {
    void* memory = mmap(nullptr, kFibersPerSlab * kStride, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) end_with(here(ReportKind::kOutOfMemory));
    char* slab = static_cast<char*>(memory);
    const int first = static_cast<int>(slabs_.size() * kFibersPerSlab);
    slabs_.push_back(slab);
    for (std::size_t i = 0; i < kFibersPerSlab; ++i) mprotect(slab + i * kStride, kStackGuardBytes, PROT_NONE);
    for (int i = static_cast<int>(kFibersPerSlab) - 1; i >= 0; --i) free_.push_back(first + i);
  }

  std::vector<char*> slabs_;
  std::vector<int> free_;
};

}  // namespace emulator
