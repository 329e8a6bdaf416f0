// Warp operations in flight: lanes that named the same mask meet in a group, and the last to arrive computes.
#pragma once
#include <array>
#include <cstdint>

#include "include/emulator/abi.hpp"

namespace emulator {

constexpr unsigned kLanes = 32;

struct LaneRequest {
  int operation;
  Site site;
  unsigned mask;
  int source;
  std::uint64_t value;
  std::uint64_t result;
  void* payload;
  CollectiveFunction function;
};

struct WarpGroup {
  unsigned mask = 0;     // lanes that the operation names
  unsigned arrived = 0;  // lanes that wait
};

// Groups of one warp; lanes with disjoint masks can be in different operations at the same time.
struct Warp {
  std::array<WarpGroup, kLanes> groups;
  int count = 0;
  unsigned existing = 0;  // lanes of this warp that the block has
  unsigned converging = 0;  // lanes that asked for the active mask and wait for the others to get as far as they can
  unsigned suspended = 0;   // lanes that wait for anything, those that are ready to go on included
  unsigned runnable = 0;    // of the suspended ones, those that are ready

  WarpGroup& group_of(unsigned mask) {
    for (int i = 0; i < count; ++i)
      if (groups[static_cast<std::size_t>(i)].mask == mask) return groups[static_cast<std::size_t>(i)];
    groups[static_cast<std::size_t>(count)] = {mask, 0};
    return groups[static_cast<std::size_t>(count++)];
  }
  void erase(WarpGroup& group) { group = groups[static_cast<std::size_t>(--count)]; }
};

// Calls visit(lane) for every set bit.
template <class Visit>
inline void for_each_lane(unsigned lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<unsigned>(__builtin_ctz(lanes)));
}

inline std::uint64_t reduce_lanes(int operation, const LaneRequest* lanes, unsigned arrived) {
  const unsigned first = static_cast<unsigned>(__builtin_ctz(arrived));
  auto total = static_cast<std::uint32_t>(lanes[first].value);
  for_each_lane(arrived & (arrived - 1), [&](unsigned lane) {
    const auto value = static_cast<std::uint32_t>(lanes[lane].value);
    const auto less = static_cast<std::int32_t>(value) < static_cast<std::int32_t>(total);
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

inline std::uint64_t vote(const LaneRequest* lanes, unsigned arrived) {
  unsigned ballot = 0;
  for_each_lane(arrived, [&](unsigned lane) { ballot |= lanes[lane].value != 0 ? 1u << lane : 0u; });
  return ballot;
}

inline void match_lanes(LaneRequest* lanes, unsigned arrived) {
  for_each_lane(arrived, [&](unsigned lane) {
    unsigned same = 0;
    for_each_lane(arrived, [&](unsigned other) { same |= lanes[other].value == lanes[lane].value ? 1u << other : 0u; });
    lanes[lane].result = same;
  });
}

// Sets every arrived lane's result. All of them ask for the same operation.
inline void compute_warp_operation(LaneRequest* lanes, unsigned arrived) {
  const LaneRequest& first = lanes[__builtin_ctz(arrived)];
  std::uint64_t common = 0;
  switch (first.operation) {
    case kShuffle:
      // What a lane reads from one that takes no part is undefined; all ones are NaN in every float type.
      for_each_lane(arrived, [&](unsigned lane) {
        const auto source = static_cast<unsigned>(lanes[lane].source);
        lanes[lane].result = arrived >> source & 1 ? lanes[source].value : ~std::uint64_t{0};
      });
      return;
    case kMatchAny:
      match_lanes(lanes, arrived);
      return;
    case kCollective: {
      void* payloads[kLanes] = {};
      for_each_lane(arrived, [&](unsigned lane) { payloads[lane] = lanes[lane].payload; });
      first.function(payloads, arrived);
      return;
    }
    case kMatchAll:
      common = arrived;
      for_each_lane(arrived, [&](unsigned lane) { common = lanes[lane].value == first.value ? common : 0; });
      break;
    case kBallot: common = vote(lanes, arrived); break;
    case kAll: common = vote(lanes, arrived) == arrived; break;
    case kActiveMask: common = arrived; break;
    case kSyncWarp: break;
    default: common = reduce_lanes(first.operation, lanes, arrived); break;
  }
  for_each_lane(arrived, [&](unsigned lane) { lanes[lane].result = common; });
}

}  // namespace emulator
