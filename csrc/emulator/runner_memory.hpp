// What the runner itself allocates, apart from the C library's heap: that one is made read-only before a program runs,
// and this one is put back to what it was whenever a program's traces are wiped.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace emulator {

class RunnerMemory {
 public:
  static constexpr std::size_t kBytes = 512u << 20;  // reserved; used are the panels of products, tables, tapes

  // Null where it is exhausted. The block allocated last gives its bytes back when it is freed, others do not: the
  // runner's vectors live for the whole process or for one step.
  void* allocate(std::size_t bytes) {
    const Lock lock(busy_);
    if (base_ == nullptr && !map()) return nullptr;
    const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    if (bytes > kBytes || used_ > kBytes - whole) return nullptr;
    char* block = base_ + used_ + kAlignment;
    *reinterpret_cast<std::size_t*>(block - sizeof(std::size_t)) = whole;
    used_ += whole;
    return block;
  }
  void free(void* block) {
    if (block == nullptr) return;
    const Lock lock(busy_);
    char* start = static_cast<char*>(block) - kAlignment;
    const std::size_t whole = *reinterpret_cast<std::size_t*>(static_cast<char*>(block) - sizeof(std::size_t));
    if (start + whole == base_ + used_) used_ -= whole;
  }

  char* base() const { return base_; }
  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t kAlignment = 64;

  class Lock {
   public:
    explicit Lock(std::atomic_flag& flag) : flag_(flag) {
      while (flag_.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { flag_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& flag_;
  };

  bool map() {
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    base_ = static_cast<char*>(at);
    return true;
  }

  char* base_ = nullptr;
  std::size_t used_ = 0;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

inline RunnerMemory runner_memory;  // constant-initialised, so that it serves allocations before main

}  // namespace emulator
