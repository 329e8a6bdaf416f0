// The language extensions of CUDA C++ as macros, and the built-in variables.
#pragma once
#include "abi.hpp"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 800
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

// A mark that the compiler itself can be asked for, and that changes nothing else: two kernels are never merged anyway.
#if defined(__GNUC__) && !defined(__clang__)
#define __global__ __attribute__((no_icf))
#define EMULATOR_CHECK_KERNEL(name) static_assert(__builtin_has_attribute(name, no_icf), "no kernel: declare it __global__");
#else
#define __global__
#define EMULATOR_CHECK_KERNEL(name)
#endif
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
// One block at a time runs on an OS thread, so a block's static shared memory is that thread's own storage.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define EMULATOR_NOINLINE __attribute__((noinline))  // libstdc++ spells the attribute __noinline__, so no macro may
#define __builtin_assume(condition) ((void)0)
#define __assume(condition) ((void)0)

// Values, not variables: as on a device, they have no address.
#define threadIdx (uint3{emulator_context.thread_index})
#define blockIdx (uint3{emulator_context.block_index})
#define blockDim (dim3{emulator_context.block_dim})
#define gridDim (dim3{emulator_context.grid_dim})
#define warpSize 32

// Two barriers on one line have different numbers.
#define EMULATOR_SITE (static_cast<emulator::Site>(__COUNTER__ << 16 | (__LINE__ & 0xffff)))

#define __trap() emulator_trap(EMULATOR_SITE)
#define __brkpt() emulator_trap(EMULATOR_SITE)

namespace emulator {

// Called where a spin loop would wait for another thread; cheap enough for every atomic operation.
inline void spin_hint() {
  if ((++emulator_context.spins & 255u) == 0) emulator_yield();
}

inline unsigned lane() { return emulator_context.linear & 31u; }

}  // namespace emulator
