// The one shared object that a session runs: its kernels, its thread-local segment (the static shared memory of a
// block) and its writable globals (the module's state).
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <link.h>

#include "block_scheduler.hpp"

extern "C" void* __tls_get_addr(void*);

namespace emulator {

class Module {
 public:
  // Runs the object's initialisers, so the process must be confined by now. Returns an empty text, or what failed.
  std::string load(const char* path) {
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) return reason(dlerror(), path);
    link_map* map = nullptr;
    if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return dlerror();
    base_ = map->l_addr;
    dl_iterate_phdr(&Module::read_headers, this);
    return "";
  }

  KernelEntry kernel(std::size_t number) const {
    const std::string name = "emulator_kernel_" + std::to_string(number);
    return reinterpret_cast<KernelEntry>(dlsym(handle_, name.c_str()));
  }

  std::size_t static_shared_bytes() const { return tls_bytes_; }
  // Static shared memory of the calling OS thread.
  char* static_shared() const {
    struct {
      unsigned long module, offset;
    } index{tls_module_, 0};
    return tls_module_ == 0 ? nullptr : static_cast<char*>(__tls_get_addr(&index));
  }

  // Offset of an instruction in the object, 0 where it lies outside.
  std::uint64_t offset_of(std::uint64_t instruction) const {
    return instruction >= base_ && instruction < base_ + span_ ? instruction - base_ : 0;
  }

  template <class Visit>
  void each_segment(Visit visit) const {
    for (const Segment& segment : segments_) visit(segment.start, segment.image.size());
  }

  bool state_changed() const {
    for (const Segment& segment : segments_)
      if (std::memcmp(segment.start, segment.image.data(), segment.image.size()) != 0) return true;
    return false;
  }
  void restore_state() {
    for (const Segment& segment : segments_) std::memcpy(segment.start, segment.image.data(), segment.image.size());
  }

 private:
  // The loader's message without the path that it begins with: reports are short.
  static std::string reason(const std::string& message, const std::string& path) {
    return message.rfind(path + ": ", 0) == 0 ? message.substr(path.size() + 2) : message;
  }

  struct Segment {
    char* start;
    std::vector<char> image;  // as it was right after loading
  };

  static int read_headers(dl_phdr_info* info, std::size_t, void* self_pointer) {
    auto& self = *static_cast<Module*>(self_pointer);
    if (info->dlpi_addr != self.base_) return 0;
    std::uint64_t read_only_end = 0;  // of the part that the loader made read-only after relocation
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
        read_only_end = (info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz) & ~(kPageBytes - 1);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& header = info->dlpi_phdr[i];
      if (header.p_type == PT_TLS) {
        self.tls_module_ = info->dlpi_tls_modid;
        self.tls_bytes_ = header.p_memsz;
      }
      if (header.p_type != PT_LOAD) continue;
      self.span_ = std::max<std::uint64_t>(self.span_, header.p_vaddr + header.p_memsz);
      if ((header.p_flags & PF_W) == 0) continue;
      const std::uint64_t first = std::max<std::uint64_t>(header.p_vaddr, read_only_end);
      // To the end of the page: behind the last variable there is memory, too.
      const std::uint64_t last = (header.p_vaddr + header.p_memsz + kPageBytes - 1) & ~(kPageBytes - 1);
      if (first >= header.p_vaddr + header.p_memsz) continue;
      char* start = reinterpret_cast<char*>(self.base_ + first);
      self.segments_.push_back({start, std::vector<char>(start, start + (last - first))});
    }
    return 1;
  }

  void* handle_ = nullptr;
  std::uint64_t base_ = 0, span_ = 0;
  std::size_t tls_module_ = 0, tls_bytes_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace emulator
