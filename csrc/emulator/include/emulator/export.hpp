// Exports of a compiled kernel: an entry that runs the threads of a block, and its parameters' kinds and sizes.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "bfloat16.hpp"
#include "builtins.hpp"
#include "half.hpp"

namespace emulator {

// Ends the current thread and makes the next one current. While nothing is suspended, which is always so in a kernel
// without barriers and warp operations, this is a few instructions and the kernel's threads are one plain loop.
inline void next_thread() {
  Context& context = emulator_context;
  context.exited[context.linear] = 1;
  if (__builtin_expect(context.attention == 0 && context.next < context.count, 1)) {
    ThreadSlot slot;  // copied as bytes: the sanitizer would check an access through the pointer
    std::memcpy(&slot, context.order + context.next++, sizeof slot);
    context.thread_index = slot.index;
    context.linear = slot.linear;
    return;
  }
  emulator_thread_ended();
}

template <class T>
constexpr ParameterKind parameter_kind() {
  if constexpr (std::is_pointer_v<T>) return kPointer;
  else if constexpr (std::is_same_v<T, bool>) return kBool;
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return std::is_signed_v<T> ? kSigned : kUnsigned;
  else if constexpr (std::is_floating_point_v<T>) return kFloating;
  else if constexpr (std::is_same_v<T, emulator_fp16::__half>) return kHalf;
  else if constexpr (std::is_same_v<T, emulator_bf16::__nv_bfloat16>) return kBfloat16;
  else return kOther;
}

struct Parameter {
  std::int32_t kind, bytes;
};

template <class Function>
struct Kernel;

template <class... P>
struct Kernel<void (*)(P...)> {
  static constexpr int kParameters = sizeof...(P);

  // One entry more than parameters, since C++ has no empty array.
  struct Signature {
    std::int32_t count;
    Parameter parameters[sizeof...(P) + 1];
  };
  static constexpr Signature signature() {
    return {kParameters, {{parameter_kind<std::remove_cv_t<P>>(), static_cast<std::int32_t>(sizeof(P))}..., {0, 0}}};
  }

  template <class T>
  static T load(const void* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  template <class Function, std::size_t... I>
  [[gnu::always_inline]] static void run(Function kernel, void** arguments, std::index_sequence<I...>) {
    void* slots[sizeof...(P) + 1];
    std::memcpy(slots, arguments, sizeof...(P) * sizeof *slots);
    run_with(kernel, load<std::remove_cv_t<P>>(slots[I])...);
  }
  template <class Function>
  [[gnu::always_inline]] static void run_with(Function kernel, P... arguments) {
    for (;;) {
      kernel(arguments...);
      next_thread();
    }
  }
};

}  // namespace emulator

// `target` is a constant pointer to the kernel, so that the call is direct and can be inlined.
#define EMULATOR_EXPORT_KERNEL(number, target)                                                                  \
  extern "C" __attribute__((visibility("default"), used)) void emulator_kernel_##number(void** arguments) {     \
    using Kernel = emulator::Kernel<std::remove_cv_t<decltype(target)>>;                                        \
    Kernel::run([](auto... values) __attribute__((always_inline)) { target(values...); }, arguments,            \
                std::make_index_sequence<Kernel::kParameters>{});                                               \
  }                                                                                                             \
  extern "C" __attribute__((visibility("default"), used)) constexpr auto emulator_signature_##number =          \
      emulator::Kernel<std::remove_cv_t<decltype(target)>>::signature();
