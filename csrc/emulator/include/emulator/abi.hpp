// What compiled programs and the runtime share: the per-thread context and the entry points into the scheduler.
// Included by both sides, so nothing here depends on the shim's macros.
#pragma once
#include <cstddef>
#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

namespace emulator {

struct ThreadSlot {
  uint3 index;
  unsigned linear;  // x fastest; lane = linear % 32
};

// One per OS thread. Fibers never move between OS threads, so its address is constant for a running kernel.
struct Context {
  uint3 thread_index;
  unsigned linear;
  uint3 block_index;
  unsigned attention;  // threads that started, did not end and do not run; while there are any, ends are scheduled
  dim3 block_dim;
  unsigned next;  // position in `order` of the first thread that was never started
  dim3 grid_dim;
  unsigned count;           // threads of a block
  const ThreadSlot* order;  // in the order in which threads start
  unsigned char* exited;    // [count], 1 once a thread has ended
  void* dynamic_shared;
  unsigned spins;  // counts calls that a spin loop makes; every so often another thread gets a turn
};

enum BarrierKind { kSync = 0, kCount = 1, kAnd = 2, kOr = 3 };

enum WarpOperation {
  kShuffle,
  kBallot,
  kAll,
  kMatchAny,
  kMatchAll,
  kReduceAdd,
  kReduceMinSigned,
  kReduceMaxSigned,
  kReduceMinUnsigned,
  kReduceMaxUnsigned,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
  kSyncWarp,
  kActiveMask,
  kCollective,
};

// Runs on the last lane to arrive, with every lane's payload (null where a lane takes no part).
using CollectiveFunction = void (*)(void** payloads, unsigned mask);

// Where a barrier or warp operation stands: line in the low 16 bits, a number of its own above.
using Site = unsigned;

// Kinds of a kernel's parameter, as exported beside each kernel.
enum ParameterKind { kPointer, kSigned, kUnsigned, kFloating, kHalf, kBfloat16, kBool, kOther };

}  // namespace emulator

extern "C" {
extern __thread emulator::Context emulator_context __attribute__((tls_model("initial-exec")));
int emulator_barrier(int kind, int predicate, emulator::Site site);
std::uint64_t emulator_warp(int operation, unsigned mask, std::uint64_t value, int source_lane, emulator::Site site);
void emulator_warp_collective(unsigned mask, void* payload, emulator::CollectiveFunction function,
                              emulator::Site site);
void emulator_thread_ended();  // switches to another thread; returns with the context of a thread to be started
void emulator_yield();
[[noreturn]] void emulator_trap(emulator::Site site);
void* emulator_malloc(std::size_t bytes);  // null where the device's heap is exhausted
void emulator_free(void* block);
}
