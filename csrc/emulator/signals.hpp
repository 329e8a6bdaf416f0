// Turns the processor's traps into reports: which buffer was missed by how much, by which thread, at which instruction.
#pragma once
#include <csignal>
#include <cstdint>

#include <ucontext.h>

#include "arena.hpp"
#include "launcher.hpp"
#include "module.hpp"
#include "reporting.hpp"

namespace emulator {

inline const Arena* faulting_arena = nullptr;
inline const Module* faulting_module = nullptr;
inline bool faulting_guard_left = false;

constexpr std::uint64_t kNullPageBytes = 1 << 20;  // a null pointer and an index
constexpr int kNonCanonicalAddress = 128;          // SI_KERNEL: the processor gives no address

inline std::uint64_t instruction_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  (void)machine;
  return 0;
#endif
}

inline int is_write(const void* context) {
#if defined(__x86_64__)
  return static_cast<int>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1);
#else
  (void)context;
  return -1;
#endif
}

inline void describe_address(Report& report, std::uint64_t address, int code) {
  report.address = address;
  const BlockScheduler* scheduler = BlockScheduler::current();
  if (code == kNonCanonicalAddress) {
    report.kind = ReportKind::kWildPointer;
  } else if (address < kNullPageBytes || address > ~kNullPageBytes) {
    report.kind = ReportKind::kNullPointer;
    report.offset = static_cast<std::int64_t>(address);
  } else if (scheduler != nullptr && scheduler->stacks().is_guard(address)) {
    report.kind = ReportKind::kStackOverflow;
    report.counts[0] = kStackBytes;
  } else if (dynamic_shared != nullptr && dynamic_shared->holds(address, &report.offset)) {
    report.kind = ReportKind::kOutOfDynamicShared;
    report.counts[0] = static_cast<std::int64_t>(dynamic_shared->bytes());
  } else if (faulting_arena != nullptr && (report.buffer = faulting_arena->nearest(address)) >= 0) {
    report.kind = ReportKind::kOutOfBuffer;
    const char* start = faulting_arena->data(static_cast<std::size_t>(report.buffer), faulting_guard_left);
    report.offset = static_cast<std::int64_t>(address - reinterpret_cast<std::uint64_t>(start));
  } else if (faulting_module != nullptr && faulting_module->offset_of(address) != 0) {
    report.kind = ReportKind::kReadOnlyMemory;
  } else {
    report.kind = ReportKind::kWildPointer;
  }
}

inline void on_signal(int number, siginfo_t* info, void* context) {
  Report report = here(ReportKind::kIllegalInstruction);
  const std::uint64_t instruction = instruction_of(context);
  if (faulting_module != nullptr) report.instruction = faulting_module->offset_of(instruction);
  switch (number) {
    case SIGSEGV:
      report.is_write = is_write(context);
      describe_address(report, reinterpret_cast<std::uint64_t>(info->si_addr), info->si_code);
      break;
    case SIGBUS: report.kind = ReportKind::kOutOfMemory; break;  // the shared file could not grow
    case SIGFPE: report.kind = ReportKind::kIntegerDivision; break;
    case SIGABRT: report.kind = ReportKind::kAborted; break;
    default: break;
  }
  end_with(report);
}

inline void install_signal_handlers() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT}) sigaction(number, &action, nullptr);
}

}  // namespace emulator
