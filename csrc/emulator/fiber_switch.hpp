// Switching between stacks: by hand on x86-64 and aarch64, through ucontext elsewhere (about six times slower).
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#define EMULATOR_UCONTEXT 1
#endif

#ifdef EMULATOR_UCONTEXT
#include <memory>

#include <ucontext.h>
#endif

namespace emulator {

using FiberEntry = void (*)();

#ifdef EMULATOR_UCONTEXT

// What is needed to continue a suspended stack.
struct Suspended {
  std::unique_ptr<ucontext_t> context = std::make_unique<ucontext_t>();
};

inline void switch_stack(Suspended& from, Suspended& to) { swapcontext(from.context.get(), to.context.get()); }

inline void prepare_stack(Suspended& fiber, char* stack, std::size_t bytes, FiberEntry entry) {
  getcontext(fiber.context.get());
  fiber.context->uc_stack.ss_sp = stack;
  fiber.context->uc_stack.ss_size = bytes;
  fiber.context->uc_link = nullptr;
  makecontext(fiber.context.get(), entry, 0);
}

#else

struct Suspended {
  void* stack_pointer = nullptr;
};

extern "C" void emulator_switch_stack(void** save, void* load);

#if defined(__x86_64__)
constexpr std::size_t kSavedWords = 6;
#endif

inline void switch_stack(Suspended& from, Suspended& to) {
  emulator_switch_stack(&from.stack_pointer, to.stack_pointer);
}

// Lays out a stack so that the first switch to it enters `entry`, which never returns.
inline void prepare_stack(Suspended& fiber, char* stack, std::size_t bytes, FiberEntry entry) {
  auto top = (reinterpret_cast<std::uintptr_t>(stack) + bytes) & ~std::uintptr_t{15};
  auto* slot = reinterpret_cast<std::uintptr_t*>(top);
#if defined(__x86_64__)
  *--slot = 0;  // where a return address would be: keeps the alignment that a call leaves
  *--slot = reinterpret_cast<std::uintptr_t>(entry);
  for (std::size_t i = 0; i < kSavedWords; ++i) *--slot = 0;
#else
  slot -= 20;
  for (int i = 0; i < 20; ++i) slot[i] = 0;
  slot[11] = reinterpret_cast<std::uintptr_t>(entry);  // x30, where `ret` goes
#endif
  fiber.stack_pointer = slot;
}

#endif

}  // namespace emulator
