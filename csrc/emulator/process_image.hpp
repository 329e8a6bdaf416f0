// The runner's own memory as it was before a program ran. A program is native code of the same process: whatever it can
// write to could keep results from one timed replay to the next. So every mapping is one of three kinds: wiped by its
// owner (stacks of threads, shared memory, heap, globals of the module), kept here and put back (the runner's variables,
// tables, thread-local storage, stack), or read-only from now on (all libraries, and what they allocated).
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fiber_pool.hpp"
#include "runner_memory.hpp"

namespace emulator {

struct AddressRange {
  std::uintptr_t start, end;
  std::size_t bytes() const { return end - start; }
  bool holds(std::uintptr_t address) const { return address >= start && address < end; }
};

class RangeList {
 public:
  // Returns false where there is no room: a process has some forty mappings.
  bool add(std::uintptr_t start, std::uintptr_t end) {
    if (start >= end) return true;
    if (count_ == kMost) return false;
    ranges_[count_++] = {start, end};
    return true;
  }
  void sort() {
    std::sort(begin(), end(), [](const AddressRange& a, const AddressRange& b) { return a.start < b.start; });
  }
  AddressRange* begin() { return ranges_; }
  AddressRange* end() { return ranges_ + count_; }
  const AddressRange* begin() const { return ranges_; }
  const AddressRange* end() const { return ranges_ + count_; }

 private:
  static constexpr std::size_t kMost = 120;
  AddressRange ranges_[kMost]{};
  std::size_t count_ = 0;
};

// Has a page of its own, which is read-only once the image is taken, at an address that no variable holds.
class alignas(kPageBytes) ProcessImage {
 public:
  // Opens the list of mappings, which a confined process cannot.
  void open_maps() { maps_ = open("/proc/self/maps", O_RDONLY | O_CLOEXEC); }

  // A range that others wipe; it stays writable.
  void exempt(const void* start, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    complete_ = exempt_.add(page_down(first), page_up(first + bytes)) && complete_;
  }

  // Takes the image of a process of one thread: of its stack, what lies at `floor` or above, which must not change
  // afterwards. Returns whether it could.
  [[nodiscard]] bool keep(const void* floor) {
    if (maps_ < 0) return false;
    exempt(this, sizeof *this);
    exempt(runner_memory.base(), RunnerMemory::kBytes);
    RangeList frozen;
    if (!classify(reinterpret_cast<std::uintptr_t>(floor), frozen) || !complete_) return false;
    const auto own = reinterpret_cast<std::uintptr_t>(runner_memory.base());
    own_ = {own, own + runner_memory.used()};
    std::size_t total = own_.bytes();
    for (const AddressRange& range : kept_) total += range.bytes();
    void* copy = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return false;
    copy_ = static_cast<char*>(copy);
    char* to = put(copy_, own_);
    for (const AddressRange& range : kept_) to = put(to, range);
    bool done = true;
    for (const AddressRange& range : frozen) done = mprotect(pointer(range.start), range.bytes(), PROT_READ) == 0 && done;
    done = mprotect(copy_, total, PROT_READ) == 0 && done;
    return mprotect(this, sizeof *this, PROT_READ) == 0 && done;
  }

  // Puts back what was kept and wipes the rest of the runner's own.
  void restore() const {
    if (copy_ == nullptr) return;
    const char* from = copy_;
    from = take(own_, from);
    for (const AddressRange& range : kept_) from = take(range, from);
    const std::uintptr_t pages = page_up(own_.end);
    std::memset(pointer(own_.end), 0, pages - own_.end);
    madvise(pointer(pages), own_.start + RunnerMemory::kBytes - pages, MADV_DONTNEED);
    wipe_stack_below();
  }

 private:
  static constexpr std::size_t kMostText = 256 * 1024;        // of the list of mappings
  static constexpr std::size_t kStackReach = 96 * 1024;        // what the system has surely made part of the stack

  static void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
  static std::uintptr_t page_down(std::uintptr_t address) { return address & ~(kPageBytes - 1); }
  static std::uintptr_t page_up(std::uintptr_t address) { return page_down(address + kPageBytes - 1); }

  static char* put(char* to, const AddressRange& range) {
    std::memcpy(to, pointer(range.start), range.bytes());
    return to + range.bytes();
  }
  static const char* take(const AddressRange& range, const char* from) {
    std::memcpy(pointer(range.start), from, range.bytes());
    return from + range.bytes();
  }

  // Sorts the private writable mappings. Returns false where there are too many.
  bool classify(std::uintptr_t floor, RangeList& frozen) {
    void* text = mmap(nullptr, kMostText, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) return false;
    char* line = static_cast<char*>(text);
    for (std::size_t length = 0; length + 1 < kMostText;) {
      const ssize_t got = read(maps_, line + length, kMostText - 1 - length);
      if (got <= 0) break;
      length += static_cast<std::size_t>(got);
    }
    close(maps_);
    const AddressRange itself{reinterpret_cast<std::uintptr_t>(text), reinterpret_cast<std::uintptr_t>(text) + kMostText};
    complete_ = exempt_.add(itself.start, itself.end) && complete_;
    exempt_.sort();
    bool fits = true, after_runner = false;
    std::uintptr_t runner_end = 0;
    while (*line != 0) {
      char* rest = nullptr;
      const std::uintptr_t start = std::strtoull(line, &rest, 16), end = std::strtoull(rest + 1, &rest, 16);
      char* next = std::strchr(rest, '\n');
      if (next != nullptr) *next = 0;
      if (rest[2] == 'w' && rest[4] == 'p') {
        const AddressRange mapping{start, end};
        after_runner = is_runner(mapping) || (after_runner && start == runner_end);
        if (after_runner) runner_end = end;
        const bool is_stack = std::strstr(rest, "[stack]") != nullptr;
        if (is_stack) fits = kept_.add(floor, end) && fits;
        else fits = add_rest(mapping, after_runner || is_threads(mapping) ? kept_ : frozen) && fits;
      }
      if (next == nullptr) break;
      line = next + 1;
    }
    munmap(text, kMostText);
    return fits;
  }

  // The mappings of the runner's variables: one from its file, and one behind it of those that begin as zeros.
  static bool is_runner(const AddressRange& mapping) {
    return mapping.holds(reinterpret_cast<std::uintptr_t>(&control_fd)) ||
           mapping.holds(reinterpret_cast<std::uintptr_t>(&runner_memory));
  }
  static bool is_threads(const AddressRange& mapping) {
    return mapping.holds(reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()));
  }

  // The system joins neighbouring mappings of one kind, so one may hold ranges of several owners.
  bool add_rest(AddressRange mapping, RangeList& to) const {
    bool fits = true;
    for (const AddressRange& each : exempt_) {
      if (each.end <= mapping.start || each.start >= mapping.end) continue;
      fits = to.add(mapping.start, each.start) && fits;
      mapping.start = std::max(mapping.start, each.end);
    }
    return to.add(mapping.start, mapping.end) && fits;
  }

  // Everything below the stack pointer, where frames have ended. By no call: its return address would lie in there.
  [[gnu::noinline]] static void wipe_stack_below() {
#if defined(__x86_64__)
    __asm__ volatile(
        "cld\n\t"
        "movq %%rsp, %%rcx\n\t"
        "movq %%rsp, %%rdi\n\t"
        "andq %[page], %%rdi\n\t"
        "subq %%rdi, %%rcx\n\t"
        "movq %%rdi, %%r8\n\t"
        "xorl %%eax, %%eax\n\t"
        "rep stosb\n\t"  // what shares a page with frames that live
        "leaq -%c[reach](%%r8), %%rdi\n\t"
        "movl %[reach], %%esi\n\t"
        "movl %[advice], %%edx\n\t"
        "movl %[call], %%eax\n\t"
        "syscall"
        :
        : [page] "i"(-static_cast<long>(kPageBytes)), [reach] "i"(kStackReach), [advice] "i"(MADV_DONTNEED),
          [call] "i"(SYS_madvise)
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r11", "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile(
        "mov x9, sp\n\t"
        "and x10, x9, %[page]\n\t"
        "mov x11, x10\n"
        "1:\n\t"
        "cmp x11, x9\n\t"
        "b.hs 2f\n\t"
        "strb wzr, [x11], #1\n\t"
        "b 1b\n"
        "2:\n\t"
        "sub x0, x10, %[reach]\n\t"
        "mov x1, %[reach]\n\t"
        "mov x2, %[advice]\n\t"
        "mov x8, %[call]\n\t"
        "svc #0"
        :
        : [page] "r"(-static_cast<long>(kPageBytes)), [reach] "r"(kStackReach),
          [advice] "r"(static_cast<long>(MADV_DONTNEED)), [call] "r"(static_cast<long>(SYS_madvise))
        : "x0", "x1", "x2", "x8", "x9", "x10", "x11", "cc", "memory");
#endif
  }

  int maps_ = -1;
  bool complete_ = true;
  RangeList exempt_, kept_;
  AddressRange own_{};
  char* copy_ = nullptr;
};

inline ProcessImage process_image;

}  // namespace emulator
