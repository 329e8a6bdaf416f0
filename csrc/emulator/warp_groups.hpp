// Warp operations in flight: lanes that named the same mask meet in a group, and the last to arrive computes.
#pragma once
#include <array>
#include <cstdint>

#include "include/emulator/abi.hpp"

namespace emulator {

constexpr unsigned kLanes = 32;

struct WarpGroup {
  unsigned mask = 0;     // lanes that the operation names
  unsigned arrived = 0;  // lanes that wait
};

// One warp: what each lane asked for, as arrays over lanes, and the operations in flight. Lanes with disjoint masks can
// be in different operations at the same time.
struct Warp {
  std::array<std::uint64_t, kLanes> value, result;
  std::array<std::uint32_t, kLanes> operation, source;
  std::array<Site, kLanes> site;
  std::array<void*, kLanes> payload;
  CollectiveFunction function = nullptr;

  std::array<WarpGroup, kLanes> groups;
  unsigned count = 0;       // groups
  unsigned existing = 0;    // lanes of this warp that the block has
  unsigned converging = 0;  // lanes that asked for the active mask and wait for the others to get as far as they can

  WarpGroup& group_of(unsigned mask) {
    for (unsigned i = 0; i < count; ++i)
      if (groups[i].mask == mask) return groups[i];
    groups[count] = {mask, 0};
    return groups[count++];
  }
  void erase(WarpGroup& group) { group = groups[--count]; }
};

// Calls visit(lane) for every set bit.
template <class Visit>
inline void for_each_lane(unsigned lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<unsigned>(__builtin_ctz(lanes)));
}

inline std::uint64_t reduce_lanes(const Warp& warp, unsigned operation, unsigned arrived) {
  auto total = static_cast<std::uint32_t>(warp.value[static_cast<unsigned>(__builtin_ctz(arrived))]);
  for_each_lane(arrived & (arrived - 1), [&](unsigned lane) {
    const auto value = static_cast<std::uint32_t>(warp.value[lane]);
    const bool less = static_cast<std::int32_t>(value) < static_cast<std::int32_t>(total);
    switch (operation) {
      case kReduceAdd: total += value; break;
      case kReduceAnd: total &= value; break;
      case kReduceOr: total |= value; break;
      case kReduceXor: total ^= value; break;
      case kReduceMinSigned: total = less ? value : total; break;
      case kReduceMaxSigned: total = less ? total : value; break;
      case kReduceMinUnsigned: total = value < total ? value : total; break;
      default: total = value > total ? value : total; break;
    }
  });
  return total;
}

inline unsigned vote(const Warp& warp, unsigned arrived) {
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) ballot |= static_cast<unsigned>(warp.value[lane] != 0) << lane;
  return ballot & arrived;
}

inline unsigned lanes_like(const Warp& warp, unsigned arrived, std::uint64_t value) {
  unsigned same = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) same |= static_cast<unsigned>(warp.value[lane] == value) << lane;
  return same & arrived;
}

// Lanes among the arrived whose operation or place differs from the first one's.
inline unsigned mismatched_lanes(const Warp& warp, unsigned arrived) {
  const auto first = static_cast<unsigned>(__builtin_ctz(arrived));
  std::uint32_t difference[kLanes], any = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    difference[lane] = (warp.site[lane] ^ warp.site[first]) | (warp.operation[lane] ^ warp.operation[first]);
    any |= difference[lane];
  }
  if (any == 0) return 0;
  unsigned lanes = 0;
  for_each_lane(arrived, [&](unsigned lane) { lanes |= difference[lane] != 0 ? 1u << lane : 0u; });
  return lanes;
}

// Sets every arrived lane's result. All of them ask for the same operation.
inline void compute_warp_operation(Warp& warp, unsigned arrived) {
  const auto first = static_cast<unsigned>(__builtin_ctz(arrived));
  const unsigned operation = warp.operation[first];
  std::uint64_t common = 0;
  switch (operation) {
    case kShuffle:
      if (arrived == ~0u) {
        for (unsigned lane = 0; lane < kLanes; ++lane) warp.result[lane] = warp.value[warp.source[lane]];
        return;
      }
      // What a lane reads from one that takes no part is undefined; all ones are NaN in every float type.
      for_each_lane(arrived, [&](unsigned lane) {
        const unsigned source = warp.source[lane];
        warp.result[lane] = arrived >> source & 1 ? warp.value[source] : ~std::uint64_t{0};
      });
      return;
    case kMatchAny:
      for_each_lane(arrived, [&](unsigned lane) { warp.result[lane] = lanes_like(warp, arrived, warp.value[lane]); });
      return;
    case kCollective:
      for_each_lane(~arrived, [&](unsigned lane) { warp.payload[lane] = nullptr; });
      warp.function(warp.payload.data(), arrived);
      return;
    case kMatchAll: common = lanes_like(warp, arrived, warp.value[first]) == arrived ? arrived : 0; break;
    case kBallot: common = vote(warp, arrived); break;
    case kAll: common = vote(warp, arrived) == arrived; break;
    case kActiveMask: common = arrived; break;
    case kSyncWarp: return;
    default: common = reduce_lanes(warp, operation, arrived); break;
  }
  for_each_lane(arrived, [&](unsigned lane) { warp.result[lane] = common; });
}

}  // namespace emulator
