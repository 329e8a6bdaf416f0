// What compiled programs call: the scheduler, the sanitizer's handlers, and the end of a failed assertion.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "block_scheduler.hpp"
#include "device_heap.hpp"
#include "module.hpp"
#include "reporting.hpp"
#include "signals.hpp"

using emulator::BlockScheduler;
using emulator::Report;
using emulator::ReportKind;

namespace {

std::uint64_t caller_offset(void* return_address) {
  if (emulator::faulting_module == nullptr) return 0;
  return emulator::faulting_module->offset_of(reinterpret_cast<std::uint64_t>(return_address) - 1);
}

// The sanitizer's own layout of its static data, shared by gcc and clang.
struct SourceLocation {
  const char* file;
  std::uint32_t line, column;
};
struct TypeDescriptor {
  std::uint16_t kind, info;
  char name[1];
};
struct OutOfBoundsData {
  SourceLocation location;
  const TypeDescriptor* array_type;
  const TypeDescriptor* index_type;
};
struct TypeMismatchData {
  SourceLocation location;
  const TypeDescriptor* type;
  unsigned char log_alignment, check_kind;
};
struct AlignmentAssumptionData {
  SourceLocation location;
  SourceLocation assumption;
  const TypeDescriptor* type;
};

// Lines are of the program's own text only; a place inside the shim is found through the instruction instead.
Report sanitizer_report(ReportKind kind, const SourceLocation& location, const char* type, void* caller) {
  Report report = emulator::here(kind);
  if (location.file != nullptr && std::strncmp(location.file, "kernel_", 7) == 0)
    report.line = static_cast<std::int32_t>(location.line);
  report.instruction = caller_offset(caller);
  emulator::set_text(report, type);
  return report;
}

}  // namespace

extern "C" {

__thread emulator::Context emulator_context __attribute__((tls_model("initial-exec"))) = {};

void* emulator_malloc(std::size_t bytes) { return emulator::device_heap.allocate(bytes); }
void emulator_free(void*) {}

int emulator_barrier(int kind, int predicate, emulator::Site site) {
  return BlockScheduler::current()->barrier(kind, predicate, site);
}

std::uint64_t emulator_warp(int operation, unsigned mask, std::uint64_t value, int source_lane, emulator::Site site) {
  return BlockScheduler::current()->warp_operation(operation, mask, value, source_lane, site);
}

void emulator_warp_collective(unsigned mask, void* payload, emulator::CollectiveFunction function,
                              emulator::Site site) {
  BlockScheduler::current()->warp_collective(mask, payload, function, site);
}

void emulator_thread_ended() { BlockScheduler::current()->thread_ended(); }

void emulator_yield() { BlockScheduler::current()->yield(); }

void emulator_trap(emulator::Site site) {
  Report report = emulator::here(ReportKind::kTrap);
  report.line = emulator::line_of(site);
  emulator::end_with(report);
}

[[noreturn]] void __ubsan_handle_out_of_bounds_abort(const OutOfBoundsData* data, std::uint64_t index) {
  Report report = sanitizer_report(ReportKind::kIndexOutOfArray, data->location, data->array_type->name,
                                   __builtin_return_address(0));
  report.counts[0] = static_cast<std::int64_t>(index);
  report.counts[1] = data->index_type->info & 1;  // the index type is signed
  report.counts[2] = 1 << (data->index_type->info >> 1);  // its bits
  emulator::end_with(report);
}

[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(const TypeMismatchData* data, std::uint64_t address) {
  Report report =
      sanitizer_report(ReportKind::kMisaligned, data->location, data->type->name, __builtin_return_address(0));
  report.address = address;
  report.counts[0] = 1 << data->log_alignment;
  emulator::end_with(report);
}

[[noreturn]] void __ubsan_handle_alignment_assumption_abort(const AlignmentAssumptionData* data, std::uint64_t address,
                                                            std::uint64_t alignment, std::uint64_t) {
  Report report =
      sanitizer_report(ReportKind::kMisaligned, data->location, data->type->name, __builtin_return_address(0));
  report.address = address;
  report.counts[0] = static_cast<std::int64_t>(alignment);
  emulator::end_with(report);
}

// What the C library would do about these writes to its own memory, which is read-only by now.
double lgamma(double x) noexcept {
  int sign = 0;
  return lgamma_r(x, &sign);
}
float lgammaf(float x) noexcept {
  int sign = 0;
  return lgammaf_r(x, &sign);
}
[[noreturn]] void abort() noexcept { emulator::end_with(emulator::here(ReportKind::kAborted)); }

[[noreturn]] void __assert_fail(const char* expression, const char* file, unsigned line, const char*) noexcept {
  Report report = emulator::here(ReportKind::kAssertion);
  if (file != nullptr && std::strncmp(file, "kernel_", 7) == 0) report.line = static_cast<std::int32_t>(line);
  emulator::set_text(report, expression);
  emulator::end_with(report);
}

}  // extern "C"
