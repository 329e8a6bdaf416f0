// Warp-level operations: shuffles, votes, matches, reductions. Each lane deposits its value with the scheduler; the
// last of the named lanes to arrive computes every lane's result.
#pragma once
#include <cstring>
#include <type_traits>

#include "builtins.hpp"

namespace emulator {

template <class T>
inline std::uint64_t to_bits(const T& value) {
  static_assert(sizeof(T) <= 8, "warp operations move at most eight bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
inline T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source_lane, Site site) {
  return from_bits<T>(emulator_warp(kShuffle, mask, to_bits(value), static_cast<int>(source_lane), site));
}

}  // namespace emulator

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, emulator::Site site = __builtin_LINE()) {
  const unsigned lane = emulator::lane(), base = lane & ~(width - 1u);
  return emulator::shuffle(mask, value, base | (source & (width - 1u)), site);
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        emulator::Site site = __builtin_LINE()) {
  const int lane = static_cast<int>(emulator::lane()), base = lane & ~(width - 1);
  const int source = lane - static_cast<int>(delta);
  return emulator::shuffle(mask, value, source < base ? lane : source, site);
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          emulator::Site site = __builtin_LINE()) {
  const unsigned lane = emulator::lane(), last = lane | (width - 1u), source = lane + delta;
  return emulator::shuffle(mask, value, source > last ? lane : source, site);
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                         emulator::Site site = __builtin_LINE()) {
  const unsigned lane = emulator::lane(), source = lane ^ static_cast<unsigned>(lane_mask);
  // A source in a later sub-group gives the lane's own value, as on the device.
  return emulator::shuffle(mask, value, source > (lane | (width - 1u)) ? lane : source & 31u, site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, emulator::Site site = __builtin_LINE()) {
  return static_cast<unsigned>(emulator_warp(emulator::kBallot, mask, predicate != 0, 0, site));
}
inline int __any_sync(unsigned mask, int predicate, emulator::Site site = __builtin_LINE()) {
  return emulator_warp(emulator::kBallot, mask, predicate != 0, 0, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, emulator::Site site = __builtin_LINE()) {
  return static_cast<int>(emulator_warp(emulator::kAll, mask, predicate != 0, 0, site));
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, emulator::Site site = __builtin_LINE()) {
  return static_cast<unsigned>(emulator_warp(emulator::kMatchAny, mask, emulator::to_bits(value), 0, site));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* predicate, emulator::Site site = __builtin_LINE()) {
  const auto same = static_cast<unsigned>(
      emulator_warp(emulator::kMatchAll, mask, emulator::to_bits(value), 0, site));
  *predicate = same != 0;
  return same;
}

#define EMULATOR_REDUCE(name, type, operation)                                                            \
  inline type name(unsigned mask, type value, emulator::Site site = __builtin_LINE()) {                   \
    return static_cast<type>(emulator_warp(operation, mask, static_cast<std::uint64_t>(value), 0, site)); \
  }
EMULATOR_REDUCE(__reduce_add_sync, int, emulator::kReduceAdd)
EMULATOR_REDUCE(__reduce_add_sync, unsigned, emulator::kReduceAdd)
EMULATOR_REDUCE(__reduce_min_sync, int, emulator::kReduceMinSigned)
EMULATOR_REDUCE(__reduce_min_sync, unsigned, emulator::kReduceMinUnsigned)
EMULATOR_REDUCE(__reduce_max_sync, int, emulator::kReduceMaxSigned)
EMULATOR_REDUCE(__reduce_max_sync, unsigned, emulator::kReduceMaxUnsigned)
EMULATOR_REDUCE(__reduce_and_sync, unsigned, emulator::kReduceAnd)
EMULATOR_REDUCE(__reduce_or_sync, unsigned, emulator::kReduceOr)
EMULATOR_REDUCE(__reduce_xor_sync, unsigned, emulator::kReduceXor)
#undef EMULATOR_REDUCE

inline void __syncwarp(unsigned mask = 0xffffffffu, emulator::Site site = __builtin_LINE()) {
  emulator_warp(emulator::kSyncWarp, mask, 0, 0, site);
}
// Lanes that stand at this line once no lane of the warp can go on otherwise: the converged set.
inline unsigned __activemask(emulator::Site site = __builtin_LINE()) {
  return static_cast<unsigned>(emulator_warp(emulator::kActiveMask, 1u << emulator::lane(), 0, 0, site));
}
