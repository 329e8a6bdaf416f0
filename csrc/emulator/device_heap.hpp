// The heap that device code allocates from. It is emptied and wiped between runs, so nothing kept in it survives.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace emulator {

class DeviceHeap {
 public:
  static constexpr std::size_t kBytes = 64u << 20;  // a GPU's default is 8 MB; there, freed blocks are used again

  bool map() {
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base_ = at == MAP_FAILED ? nullptr : static_cast<char*>(at);
    return base_ != nullptr;
  }

  // Null where the heap is exhausted, as on a device. Freed blocks come back with the next run only.
  void* allocate(std::size_t bytes) {
    if (bytes > kBytes) return nullptr;
    const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const std::size_t start = used_.fetch_add(whole, std::memory_order_relaxed);
    if (start > kBytes - whole) {
      used_.store(kBytes, std::memory_order_relaxed);
      return nullptr;
    }
    char* block = base_ + start;
    if (filled_) std::fill_n(reinterpret_cast<std::uint32_t*>(block), whole / sizeof(std::uint32_t), kLeftover);
    return block;
  }

  // Whether new blocks hold leftovers, as on a device, where nobody may count on zeros. It takes time: for judged runs.
  void fill_blocks(bool filled) { filled_ = filled; }

  const char* base() const { return base_; }

  void forget() {
    madvise(base_, kBytes, MADV_DONTNEED);  // all of it: an address can be made up without an allocation
    used_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kAlignment = 16;
  static constexpr std::uint32_t kLeftover = 0xffeadbad;  // NaN as floats, a negative number as integers

  bool filled_ = false;
  char* base_ = nullptr;
  std::atomic<std::size_t> used_{0};
};

inline DeviceHeap device_heap;

}  // namespace emulator
