// The plan's buffers: pages of a file in memory that the evaluator shares, each buffer far away from the next, so that
// a stray index meets an unmapped page and never another array.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <sys/mman.h>
#include <sys/random.h>

namespace emulator {

struct BufferSpec {
  std::uint64_t file_offset;   // of its pages in the shared file
  std::uint64_t region_bytes;  // whole pages, at least one
  std::uint64_t bytes;
};

class Arena {
 public:
  // Maps every buffer. Returns false where the address space cannot hold them.
  bool map(int fd, const std::vector<BufferSpec>& specs) {
    specs_ = specs;
    // Twice the reach of a 32-bit index into doubles, unless there are so many buffers that it does not fit.
    gap_ = std::min<std::uint64_t>(32ull << 30, kSpace / (specs.size() + 1)) & ~(kGuardBytes - 1);
    if (gap_ < kGuardBytes) return false;
    std::uint64_t address = kBase + random_offset();
    for (const BufferSpec& spec : specs) {
      address += gap_;
      void* at = mmap(reinterpret_cast<void*>(address), spec.region_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE | MAP_FIXED_NOREPLACE, fd, static_cast<off_t>(spec.file_offset));
      if (at != reinterpret_cast<void*>(address)) return false;
      starts_.push_back(address);
      address += (spec.region_bytes + kGuardBytes - 1) & ~(kGuardBytes - 1);
    }
    return true;
  }

  // Where the buffer's first byte lies: at the start of its pages, or so that its end is the end of its pages, up to
  // the alignment of 16 bytes that CUDA promises.
  char* data(std::size_t buffer, bool guard_left) const {
    const BufferSpec& spec = specs_[buffer];
    const std::uint64_t shift = guard_left ? 0 : spec.region_bytes - ((spec.bytes + 15) & ~15ull);
    return reinterpret_cast<char*>(starts_[buffer] + shift);
  }

  // The buffer that an address outside every buffer most likely meant, or -1 where it is far from all of them.
  int nearest(std::uint64_t address) const {
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const std::uint64_t low = starts_[i] - gap_ / 2, high = starts_[i] + specs_[i].region_bytes + gap_ / 2;
      if (address >= low && address < high) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  static constexpr std::uint64_t kBase = 0x100000000000;   // far from where programs, heaps and stacks are put
  static constexpr std::uint64_t kSpace = 0x100000000000;  // 16 TiB, reserved by nothing but convention
  static constexpr std::uint64_t kGuardBytes = 64 * 1024;  // a multiple of every page size in use

  // Addresses differ from session to session.
  static std::uint64_t random_offset() {
    std::uint32_t bits = 0;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) bits = 0;
    return (static_cast<std::uint64_t>(bits) & 0xffff) * kGuardBytes * 16;
  }

  std::vector<BufferSpec> specs_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t gap_ = 0;
};

}  // namespace emulator
