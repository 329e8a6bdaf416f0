// Which system calls each kind of confined process may make: allow-lists for all but the GPU's process, whose driver
// makes calls that no list of ours could foresee.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "seccomp.hpp"

namespace confine {
namespace seccomp {

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

inline void allow_knowing_itself(Filter& filter) {
  filter.allow({__NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid, __NR_getppid, __NR_getrusage, __NR_uname,
                __NR_sysinfo, __NR_ppoll});
  filter.allow_if_null(__NR_prlimit64, 2);  // limits are read, not set: neither its own nor another process's
#ifdef __NR_poll
  filter.allow({__NR_poll});
#endif
}

inline void allow_data_memory(Filter& filter) {
  filter.allow_if(__NR_mmap, 2, PROT_EXEC, 0);
  filter.allow_if(__NR_mprotect, 2, PROT_EXEC, 0);
}

inline void allow_looking_at_files(Filter& filter) {
  filter.allow({__NR_newfstatat, __NR_pread64, __NR_getdents64, __NR_readlinkat, __NR_fcntl, __NR_getcwd,
                __NR_faccessat});
#ifdef __NR_statx
  filter.allow({__NR_statx});
#endif
#ifdef __NR_faccessat2
  filter.allow({__NR_faccessat2});
#endif
#ifdef __NR_open
  filter.allow({__NR_stat, __NR_lstat, __NR_readlink, __NR_access});
#endif
}

inline void allow_reading_files(Filter& filter) {
  constexpr std::uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  filter.allow_if(__NR_openat, 2, writing, 0);
#ifdef __NR_open
  filter.allow_if(__NR_open, 1, writing, 0);
#endif
  allow_looking_at_files(filter);
}

// Threads, but no process. clone3 hides its flags behind a pointer, where no filter sees them.
inline void allow_threads(Filter& filter) {
  filter.allow_if(__NR_clone, 0, CLONE_THREAD, CLONE_THREAD);
#ifdef __NR_clone3
  filter.say_missing(__NR_clone3);
#endif
  filter.allow({__NR_set_robust_list});
}

// A Python process that runs a program's `forward` on symbolic arrays and prints the plan.
inline Filter tracer(bool reads_files) {
  Filter filter;
  allow_computing(filter);
  allow_knowing_itself(filter);
  allow_data_memory(filter);
  filter.allow({__NR_write, __NR_writev, __NR_rt_sigaction});
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

// The same runner once the object is loaded: no file can be opened, and nothing mapped that nobody would wipe.
inline Filter running_program(int control_fd) {
  Filter filter;
  filter.deny({__NR_brk, __NR_mmap, __NR_mremap, __NR_munmap, __NR_mprotect});
  allow_computing(filter);
  filter.allow_if(__NR_write, 0, ~0u, static_cast<std::uint32_t>(control_fd));
  filter.otherwise_deny();
  return filter;
}

// NVRTC, a library that is loaded by now: it reads headers and computes, in threads at most.
inline Filter nvrtc() {
  Filter filter;
  allow_computing(filter);
  allow_knowing_itself(filter);
  allow_data_memory(filter);
  allow_reading_files(filter);
  allow_threads(filter);
  filter.allow({__NR_write, __NR_writev, __NR_rt_sigaction});
  filter.otherwise_deny();
  return filter;
}

// Processes of the caller's own session and namespaces, which `killpg` ends whole.
inline void allow_processes(Filter& filter) {
  filter.allow({__NR_execve, __NR_wait4, __NR_waitid, __NR_exit, __NR_set_tid_address, __NR_set_robust_list,
                __NR_pipe2, __NR_dup, __NR_dup3, __NR_getpgid, __NR_getgroups});
  constexpr std::uint32_t namespaces =
      CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  filter.allow_if(__NR_clone, 0, namespaces, 0);
#ifdef __NR_clone3
  filter.say_missing(__NR_clone3);
#endif
#ifdef __NR_close_range
  filter.allow({__NR_close_range});
#endif
#ifdef __NR_vfork
  filter.allow({__NR_fork, __NR_vfork, __NR_pipe, __NR_dup2, __NR_arch_prctl, __NR_getpgrp});
#endif
}

// The host compiler: a driver that starts compilers, assemblers and linkers. Which files it may open, run and write is
// landlock's part; owners, modes and times of files, which landlock leaves alone, are refused here.
inline Filter compiler() {
  Filter filter;
  allow_computing(filter);
  allow_knowing_itself(filter);
  allow_looking_at_files(filter);
  allow_processes(filter);
  filter.allow({__NR_openat, __NR_write, __NR_writev, __NR_pwrite64, __NR_ftruncate, __NR_fallocate, __NR_fsync,
                __NR_unlinkat, __NR_renameat2, __NR_mkdirat, __NR_umask, __NR_fstatfs, __NR_statfs, __NR_fadvise64,
                __NR_copy_file_range, __NR_chdir, __NR_mmap, __NR_mprotect, __NR_rt_sigaction, __NR_pselect6});
  filter.allow_if(__NR_ioctl, 1, ~0u, TCGETS);  // is it a terminal?
#ifdef __NR_open
  filter.allow({__NR_open, __NR_creat, __NR_unlink, __NR_rename, __NR_mkdir, __NR_rmdir, __NR_select,
                __NR_getrlimit});
#endif
#ifdef __NR_renameat
  filter.allow({__NR_renameat});
#endif
  filter.otherwise_deny();
  return filter;
}

// Other processes: neither signals to them, nor their memory or limits, nor new ones.
inline void deny_processes(Filter& filter) {
  filter.deny({__NR_execve, __NR_execveat, __NR_kill, __NR_tkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo,
               __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_unshare, __NR_setns});
  filter.allow_if(__NR_tgkill, 0, ~0u, static_cast<std::uint32_t>(getpid()));  // abort()
  filter.allow_if_null(__NR_prlimit64, 2);
  filter.allow_if(__NR_clone, 0, CLONE_THREAD, CLONE_THREAD);
#ifdef __NR_clone3
  filter.say_missing(__NR_clone3);
#endif
#ifdef __NR_vfork
  filter.deny({__NR_fork, __NR_vfork});
#endif
#ifdef __NR_pidfd_open
  filter.deny({__NR_pidfd_open, __NR_pidfd_send_signal});
#endif
#ifdef __NR_pidfd_getfd
  filter.deny({__NR_pidfd_getfd});
#endif
#ifdef __NR_process_madvise
  filter.deny({__NR_process_madvise});
#endif
}

inline void deny_network(Filter& filter) {
  filter.deny({__NR_socket, __NR_socketpair, __NR_connect, __NR_bind, __NR_listen, __NR_accept, __NR_accept4,
               __NR_sendto, __NR_sendmsg, __NR_sendmmsg});
}

// What changes files without opening them, which landlock leaves alone.
inline void deny_changing_attributes(Filter& filter) {
  filter.deny({__NR_fchmod, __NR_fchmodat, __NR_fchown, __NR_fchownat, __NR_utimensat, __NR_setxattr, __NR_lsetxattr,
               __NR_fsetxattr, __NR_removexattr, __NR_lremovexattr, __NR_fremovexattr});
#ifdef __NR_chmod
  filter.deny({__NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes, __NR_futimesat});
#endif
#ifdef __NR_fchmodat2
  filter.deny({__NR_fchmodat2});
#endif
}

inline void deny_administration(Filter& filter) {
  filter.deny({__NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_bpf, __NR_perf_event_open, __NR_keyctl,
               __NR_add_key, __NR_request_key, __NR_init_module, __NR_finit_module, __NR_delete_module,
               __NR_kexec_load, __NR_reboot, __NR_swapon, __NR_swapoff, __NR_settimeofday, __NR_clock_settime,
               __NR_userfaultfd, __NR_personality, __NR_sethostname, __NR_setdomainname, __NR_quotactl, __NR_acct,
               __NR_syslog});
#ifdef __NR_setrlimit
  filter.deny({__NR_setrlimit});
#endif
#ifdef __NR_io_uring_setup
  filter.deny({__NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register});
#endif
#ifdef __NR_open_tree
  filter.deny({__NR_open_tree, __NR_move_mount, __NR_fsopen, __NR_fsmount});
#endif
}

// The process that has the GPU, once its context exists. No program's code runs in it but on the GPU; what reaches it is
// what a driver, a library or our own code would do for a program that found a hole in them.
inline Filter gpu() {
  Filter filter;
  deny_processes(filter);
  deny_network(filter);
  deny_changing_attributes(filter);
  deny_administration(filter);
  filter.otherwise_allow();
  return filter;
}

}  // namespace seccomp
}  // namespace confine
