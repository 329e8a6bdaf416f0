// A seccomp filter as raw BPF, the architecture checked first. A refused call returns EPERM, so that the caller can fail
// in an orderly way; a call of a foreign ABI kills the process. `seccomp_profiles.hpp` says what is refused.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace confine {

#if defined(__x86_64__)
#define CUDAL1_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CUDAL1_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

namespace seccomp {

// A filter at a null address is refused as such where there are filters, as unknown where there are none.
inline bool available() {
#ifdef CUDAL1_AUDIT_ARCH
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) != 0 && errno == EFAULT;
#else
  return false;
#endif
}

class Filter {
 public:
  Filter() {
#ifdef CUDAL1_AUDIT_ARCH
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    jump(BPF_JEQ, CUDAL1_AUDIT_ARCH, 1, 0);
    emit(BPF_RET | BPF_K, kKill);
#endif
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    jump(BPF_JGE, 0x40000000u, 0, 1);  // x32 numbers reach the same calls by another name
    emit(BPF_RET | BPF_K, kKill);
#endif
  }

  void allow(std::initializer_list<long> calls) {
    for (const long call : calls) on(call, SECCOMP_RET_ALLOW);
  }
  void deny(std::initializer_list<long> calls) {
    for (const long call : calls) on(call, kDenied);
  }
  // Allowed where (argument & mask) == value in the argument's low word; else EPERM.
  void allow_if(long call, int argument, std::uint32_t mask, std::uint32_t value) {
    on_argument(call, argument, mask, value, SECCOMP_RET_ALLOW, kDenied);
  }
  // Allowed where (argument & mask) != value in the argument's low word; else EPERM.
  void allow_unless(long call, int argument, std::uint32_t mask, std::uint32_t value) {
    on_argument(call, argument, mask, value, kDenied, SECCOMP_RET_ALLOW);
  }
  // Allowed where a pointer is null, in both its words.
  void allow_if_null(long call, int argument) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 7);
    emit(BPF_LD | BPF_W | BPF_ABS, argument_offset(argument));
    jump(BPF_JEQ, 0, 0, 3);
    emit(BPF_LD | BPF_W | BPF_ABS, argument_offset(argument) + 4);
    jump(BPF_JEQ, 0, 0, 1);
    emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    emit(BPF_RET | BPF_K, kDenied);
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  }
  void otherwise_deny() { emit(BPF_RET | BPF_K, kDenied); }
  void otherwise_allow() { emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  // glibc falls back to clone where clone3 says that it does not exist; with EPERM it would give up.
  void say_missing(long call) { on(call, SECCOMP_RET_ERRNO | ENOSYS); }

  // Installs the filter on every thread of the process. False where the kernel offers no seccomp filters.
  bool install() const {
#ifdef CUDAL1_AUDIT_ARCH
    sock_fprog program{static_cast<unsigned short>(code_.size()), const_cast<sock_filter*>(code_.data())};
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0) return true;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
    return false;
#endif
  }

 private:
  static constexpr std::uint32_t kDenied = SECCOMP_RET_ERRNO | EPERM;
#ifdef SECCOMP_RET_KILL_PROCESS
  static constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
#else
  static constexpr std::uint32_t kKill = SECCOMP_RET_KILL;
#endif
  static std::uint32_t argument_offset(int argument) {  // low word: both architectures are little-endian
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(argument));
  }
  void emit(int code, std::uint32_t value) {
    code_.push_back({static_cast<unsigned short>(code), 0, 0, value});
  }
  void jump(int test, std::uint32_t value, unsigned char if_true, unsigned char if_false) {
    code_.push_back({static_cast<unsigned short>(BPF_JMP | test | BPF_K), if_true, if_false, value});
  }
  void on(long call, std::uint32_t action) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 1);
    emit(BPF_RET | BPF_K, action);
  }

  void on_argument(long call, int argument, std::uint32_t mask, std::uint32_t value, std::uint32_t equal,
                   std::uint32_t other) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 6);
    emit(BPF_LD | BPF_W | BPF_ABS, argument_offset(argument));
    emit(BPF_ALU | BPF_AND | BPF_K, mask);
    jump(BPF_JEQ, value, 0, 1);
    emit(BPF_RET | BPF_K, equal);
    emit(BPF_RET | BPF_K, other);
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  }

  std::vector<sock_filter> code_;
};

}  // namespace seccomp
}  // namespace confine
