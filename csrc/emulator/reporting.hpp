// Sends reports to the evaluator, and ends the process after a fault: nothing in it is to be trusted afterwards.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "include/emulator/abi.hpp"
#include "messages.hpp"

namespace emulator {

inline int control_fd = -1;
inline std::atomic<int> current_step{-1};

// write() alone, so that it may be called in a signal handler and under the seccomp filter.
inline void send(const Report& report) {
  const char* from = reinterpret_cast<const char*>(&report);
  std::size_t left = sizeof report;
  while (left > 0) {
    const ssize_t written = write(control_fd, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(4);
    from += written;
    left -= static_cast<std::size_t>(written);
  }
}

inline Report here(ReportKind kind) {
  Report report;
  report.kind = kind;
  report.step = current_step.load(std::memory_order_relaxed);
  const Context& context = emulator_context;
  report.block[0] = context.block_index.x, report.block[1] = context.block_index.y;
  report.block[2] = context.block_index.z;
  report.thread[0] = context.thread_index.x, report.thread[1] = context.thread_index.y;
  report.thread[2] = context.thread_index.z;
  return report;
}

inline void set_text(Report& report, const char* text) {
  std::strncpy(report.text, text == nullptr ? "" : text, sizeof report.text - 1);
}

inline int line_of(Site site) { return static_cast<int>(site & 0xffff); }

// The first fault of the process wins; a second OS thread that faults meanwhile waits for the end.
[[noreturn]] inline void end_with(const Report& report) {
  static std::atomic<bool> reported{false};
  if (reported.exchange(true)) {
    for (;;) pause();
  }
  send(report);
  _exit(3);
}

}  // namespace emulator
