// Block-wide barriers and memory fences.
#pragma once
#include "builtins.hpp"

// NVRTC declares these as functions; here the call's own place is part of it.
#define __syncthreads() ((void)emulator_barrier(emulator::kSync, 0, EMULATOR_SITE))
#define __syncthreads_count(predicate) emulator_barrier(emulator::kCount, !!(predicate), EMULATOR_SITE)
#define __syncthreads_and(predicate) emulator_barrier(emulator::kAnd, !!(predicate), EMULATOR_SITE)
#define __syncthreads_or(predicate) emulator_barrier(emulator::kOr, !!(predicate), EMULATOR_SITE)

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  emulator::spin_hint();
}
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { emulator_yield(); }
