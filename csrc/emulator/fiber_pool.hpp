// Stacks of fibers: reserved in slabs, each above a guard page, kept for the life of the OS thread that made them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
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

struct Stack {
  char* start;  // lowest address, above the guard
  std::size_t bytes;
};

class FiberPool {
 public:
  FiberPool() = default;
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool() {
    for (char* slab : slabs_) munmap(slab, kFibersPerSlab * kStride);
  }

  // Makes the stacks of so many fibers now: once programs run, nothing can be mapped any more.
  void prepare(std::size_t fibers) {
    while (all_.size() < fibers) add_slab();
  }
  int used() const { return used_; }
  template <class Visit>
  void each_slab(Visit visit) const {
    for (char* slab : slabs_) visit(slab, kFibersPerSlab * kStride);
  }

  int acquire() {
    if (free_.empty()) add_slab();
    const int fiber = free_.back();
    free_.pop_back();
    used_ = std::max(used_, fiber + 1);
    return fiber;
  }
  void release(int fiber) { free_.push_back(fiber); }

  // Wipes all stacks, while no fiber is in use: what one run leaves in local arrays, or beside them, is no memory of the
  // next. The first `used` keep their topmost page, which few kernels use more than.
  void forget(int used) {
    for (std::size_t fiber = 0; fiber < all_.size(); ++fiber) {
      char* start = all_[fiber].start;
      if (fiber < static_cast<std::size_t>(used)) {
        std::memset(start + kStackBytes - kPageBytes, 0, kPageBytes);
        madvise(start, kStackBytes - kPageBytes, MADV_DONTNEED);
      } else if (fiber % kFibersPerSlab == 0 || fiber == static_cast<std::size_t>(used)) {
        const std::size_t rest = kFibersPerSlab - fiber % kFibersPerSlab;  // of the slab, in one go
        madvise(start, rest * kStride - kStackGuardBytes, MADV_DONTNEED);
      }
    }
    used_ = 0;
  }

  const Stack& stack(int fiber) const { return all_[static_cast<std::size_t>(fiber)]; }

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
    slabs_.push_back(slab);
    const int first = static_cast<int>(all_.size());
    for (std::size_t i = 0; i < kFibersPerSlab; ++i) {
      char* guard = slab + i * kStride;
      mprotect(guard, kStackGuardBytes, PROT_NONE);
      // Tops are staggered: at one distance modulo the cache's way size they would all share a few cache sets.
      all_.push_back({guard + kStackGuardBytes, kStackBytes - i % 16 * 256});
    }
    for (int i = static_cast<int>(kFibersPerSlab) - 1; i >= 0; --i) free_.push_back(first + i);
  }

  std::vector<char*> slabs_;
  std::vector<Stack> all_;
  std::vector<int> free_;
  int used_ = 0;  // fibers from 0 on that were acquired since the stacks were wiped
};

}  // namespace emulator
