// Atomic read-modify-write functions. Real atomics, because blocks may run on several OS threads.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "builtins.hpp"

namespace emulator {

template <std::size_t bytes>
using Word =
    std::conditional_t<bytes == 8, std::uint64_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint16_t>>;

// Compare-and-swap loop over any type of 2, 4 or 8 bytes. Returns the old value.
template <class T, class Function>
inline T atomic_update(T* address, Function next) {
  using W = Word<sizeof(T)>;
  W* word = reinterpret_cast<W*>(address);
  W old_bits = __atomic_load_n(word, __ATOMIC_RELAXED), new_bits;
  T old_value;
  do {
    std::memcpy(&old_value, &old_bits, sizeof old_value);
    const T new_value = next(old_value);
    std::memcpy(&new_bits, &new_value, sizeof new_bits);
  } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  spin_hint();
  return old_value;
}

template <class T>
inline T fetch_add(T* address, T value) {
  spin_hint();
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

template <class T>
inline T exchange(T* address, T value) {
  using W = Word<sizeof(T)>;
  W bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = __atomic_exchange_n(reinterpret_cast<W*>(address), bits, __ATOMIC_SEQ_CST);
  std::memcpy(&value, &bits, sizeof bits);
  spin_hint();
  return value;
}

template <class T>
inline T compare_and_swap(T* address, T expected, T desired) {
  const T wanted = expected;
  ++emulator_context.spins;  // threads may learn of each other
  __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (expected != wanted) emulator_yield();  // a lost race is what a spin lock sees
  return expected;
}

}  // namespace emulator

// Each operation at the three scopes that CUDA names; on one machine they are the same.
#define EMULATOR_ATOMIC(name, type, expression)                                                   \
  inline type name(type* address, type value) { return expression; }                              \
  inline type name##_block(type* address, type value) { return name(address, value); }            \
  inline type name##_system(type* address, type value) { return name(address, value); }

#define EMULATOR_ATOMIC_UPDATE(name, type, next) \
  EMULATOR_ATOMIC(name, type, emulator::atomic_update(address, [value](type old) -> type { return next; }))

EMULATOR_ATOMIC(atomicAdd, int, emulator::fetch_add(address, value))
EMULATOR_ATOMIC(atomicAdd, unsigned, emulator::fetch_add(address, value))
EMULATOR_ATOMIC(atomicAdd, unsigned long long, emulator::fetch_add(address, value))
EMULATOR_ATOMIC_UPDATE(atomicAdd, float, old + value)
EMULATOR_ATOMIC_UPDATE(atomicAdd, double, old + value)
EMULATOR_ATOMIC(atomicSub, int, emulator::fetch_add(address, -value))
EMULATOR_ATOMIC(atomicSub, unsigned, emulator::fetch_add(address, 0u - value))

EMULATOR_ATOMIC_UPDATE(atomicMin, int, value < old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMin, unsigned, value < old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMin, long long, value < old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMin, unsigned long long, value < old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMax, int, value > old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMax, unsigned, value > old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMax, long long, value > old ? value : old)
EMULATOR_ATOMIC_UPDATE(atomicMax, unsigned long long, value > old ? value : old)

EMULATOR_ATOMIC_UPDATE(atomicAnd, int, old & value)
EMULATOR_ATOMIC_UPDATE(atomicAnd, unsigned, old & value)
EMULATOR_ATOMIC_UPDATE(atomicAnd, unsigned long long, old & value)
EMULATOR_ATOMIC_UPDATE(atomicOr, int, old | value)
EMULATOR_ATOMIC_UPDATE(atomicOr, unsigned, old | value)
EMULATOR_ATOMIC_UPDATE(atomicOr, unsigned long long, old | value)
EMULATOR_ATOMIC_UPDATE(atomicXor, int, old ^ value)
EMULATOR_ATOMIC_UPDATE(atomicXor, unsigned, old ^ value)
EMULATOR_ATOMIC_UPDATE(atomicXor, unsigned long long, old ^ value)

EMULATOR_ATOMIC_UPDATE(atomicInc, unsigned, old >= value ? 0u : old + 1u)
EMULATOR_ATOMIC_UPDATE(atomicDec, unsigned, old == 0u || old > value ? value : old - 1u)

EMULATOR_ATOMIC(atomicExch, int, emulator::exchange(address, value))
EMULATOR_ATOMIC(atomicExch, unsigned, emulator::exchange(address, value))
EMULATOR_ATOMIC(atomicExch, unsigned long long, emulator::exchange(address, value))
EMULATOR_ATOMIC(atomicExch, float, emulator::exchange(address, value))

#define EMULATOR_ATOMIC_CAS(type)                                                                           \
  inline type atomicCAS(type* address, type compare, type value) {                                          \
    return emulator::compare_and_swap(address, compare, value);                                             \
  }                                                                                                         \
  inline type atomicCAS_block(type* address, type compare, type value) { return atomicCAS(address, compare, value); } \
  inline type atomicCAS_system(type* address, type compare, type value) { return atomicCAS(address, compare, value); }

EMULATOR_ATOMIC_CAS(int)
EMULATOR_ATOMIC_CAS(unsigned)
EMULATOR_ATOMIC_CAS(unsigned long long)
EMULATOR_ATOMIC_CAS(unsigned short)
#undef EMULATOR_ATOMIC_CAS
