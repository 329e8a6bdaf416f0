// Seccomp filters as raw BPF: one allow-list or deny-list per profile, the architecture checked first. A refused call
// returns EPERM, so that the caller can fail in an orderly way; a call of a foreign ABI kills the process.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
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
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 6);
    emit(BPF_LD | BPF_W | BPF_ABS, argument_offset(argument));
    emit(BPF_ALU | BPF_AND | BPF_K, mask);
    jump(BPF_JEQ, value, 0, 1);
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

  std::vector<sock_filter> code_;
};

// What any process needs that only computes: memory, locks, clocks, its own end, reading what it was given.
inline void allow_computing(Filter& filter) {
  filter.allow({__NR_read, __NR_readv, __NR_close, __NR_fstat, __NR_lseek, __NR_brk, __NR_mremap, __NR_munmap,
                __NR_madvise, __NR_futex, __NR_sched_yield, __NR_nanosleep, __NR_clock_nanosleep, __NR_clock_gettime,
                __NR_clock_getres, __NR_gettimeofday, __NR_getrandom, __NR_getpid, __NR_gettid, __NR_exit,
                __NR_exit_group, __NR_restart_syscall, __NR_rt_sigreturn, __NR_rt_sigprocmask, __NR_sigaltstack,
                __NR_sched_getaffinity, __NR_getcpu});
#ifdef __NR_time
  filter.allow({__NR_time});
#endif
#ifdef __NR_rseq
  filter.allow({__NR_rseq});
#endif
}

inline void allow_reading_files(Filter& filter) {
  constexpr std::uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  filter.allow_if(__NR_openat, 2, writing, 0);
  filter.allow({__NR_newfstatat, __NR_pread64, __NR_getdents64, __NR_readlinkat, __NR_fcntl});
#ifdef __NR_statx
  filter.allow({__NR_statx});
#endif
#ifdef __NR_open
  filter.allow_if(__NR_open, 1, writing, 0);
  filter.allow({__NR_stat, __NR_lstat, __NR_readlink, __NR_access});
#endif
}

// A Python process that runs a program's `forward` on symbolic arrays and prints the plan.
inline Filter tracer(bool reads_files) {
  Filter filter;
  allow_computing(filter);
  filter.allow({__NR_write, __NR_writev, __NR_mmap, __NR_mprotect, __NR_rt_sigaction, __NR_getuid, __NR_geteuid,
                __NR_getgid, __NR_getegid, __NR_getppid, __NR_getrusage, __NR_uname, __NR_sysinfo, __NR_ppoll});
#ifdef __NR_poll
  filter.allow({__NR_poll});
#endif
  if (reads_files) allow_reading_files(filter);
  filter.otherwise_deny();
  return filter;
}

// The emulator's runner while it loads the one prepared object, whose initialisers may be native code of a program.
inline Filter loading_program(int control_fd) {
  Filter filter;
  allow_computing(filter);
  allow_reading_files(filter);
  filter.allow_if(__NR_write, 0, ~0u, static_cast<std::uint32_t>(control_fd));
  filter.allow({__NR_mmap, __NR_mprotect, __NR_seccomp});
  filter.allow_if(__NR_prctl, 0, ~0u, PR_SET_SECCOMP);
  filter.otherwise_deny();
  return filter;
}

// The same runner once the object is loaded: no file can be opened and no new code mapped.
inline Filter running_program(int control_fd) {
  Filter filter;
  allow_computing(filter);
  filter.allow_if(__NR_write, 0, ~0u, static_cast<std::uint32_t>(control_fd));
  filter.allow_if(__NR_mmap, 2, PROT_EXEC, 0);
  filter.allow_if(__NR_mprotect, 2, PROT_EXEC, 0);
  filter.otherwise_deny();
  return filter;
}

// The host compiler. It starts processes and writes files, which landlock confines; its input is hostile text, not
// hostile code, so a deny-list of what no compiler needs is enough.
inline Filter compiler() {
  Filter filter;
  filter.deny({__NR_socket, __NR_socketpair, __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4,
               __NR_sendto, __NR_sendmsg, __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_mount,
               __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_unshare, __NR_setns, __NR_bpf, __NR_perf_event_open,
               __NR_keyctl, __NR_add_key, __NR_request_key, __NR_init_module, __NR_finit_module, __NR_kexec_load,
               __NR_reboot, __NR_swapon, __NR_settimeofday, __NR_userfaultfd, __NR_memfd_create, __NR_shmget});
#ifdef __NR_io_uring_setup
  filter.deny({__NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register});
#endif
  filter.otherwise_allow();
  return filter;
}

}  // namespace seccomp
}  // namespace confine
