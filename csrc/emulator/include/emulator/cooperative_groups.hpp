// Cooperative groups: thread block, tiles of up to 32 threads, converged threads. A whole grid cannot synchronise on
// the emulator, so grid groups are refused before compilation.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "barriers.hpp"
#include "integer.hpp"
#include "warp.hpp"

namespace emulator_cooperative_groups {

class thread_block {
 public:
  static void sync(emulator::Site site = __builtin_LINE()) { emulator_barrier(emulator::kSync, 0, site); }
  static unsigned thread_rank() { return emulator_context.linear; }
  static unsigned size() { return emulator_context.count; }
  static unsigned num_threads() { return emulator_context.count; }
  static dim3 group_index() { return emulator_context.block_index; }
  static dim3 thread_index() { return emulator_context.thread_index; }
  static dim3 group_dim() { return emulator_context.block_dim; }
  static dim3 dim_threads() { return emulator_context.block_dim; }
};
inline thread_block this_thread_block() { return {}; }

// Warp-level work of any group whose threads are lanes of one warp: `mask` names them.
class LaneGroup {
 public:
  unsigned thread_rank() const { return __popc(mask_ & ((1u << emulator::lane()) - 1u)); }
  unsigned size() const { return __popc(mask_); }
  unsigned num_threads() const { return size(); }
  unsigned lane_mask() const { return mask_; }

  void sync(emulator::Site site = __builtin_LINE()) const { __syncwarp(mask_, site); }
  template <class T>
  T shfl(T value, unsigned rank, emulator::Site site = __builtin_LINE()) const {
    return emulator::shuffle(mask_, value, lane_of(rank % size()), site);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, emulator::Site site = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    return emulator::shuffle(mask_, value, lane_of(rank >= delta ? rank - delta : rank), site);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, emulator::Site site = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    return emulator::shuffle(mask_, value, lane_of(rank + delta < size() ? rank + delta : rank), site);
  }
  template <class T>
  T shfl_xor(T value, unsigned lane_mask, emulator::Site site = __builtin_LINE()) const {
    const unsigned rank = thread_rank(), source = rank ^ lane_mask;
    return emulator::shuffle(mask_, value, lane_of(source < size() ? source : rank), site);
  }
  int any(int predicate, emulator::Site site = __builtin_LINE()) const { return __any_sync(mask_, predicate, site); }
  int all(int predicate, emulator::Site site = __builtin_LINE()) const { return __all_sync(mask_, predicate, site); }
  unsigned ballot(int predicate, emulator::Site site = __builtin_LINE()) const {
    return ranks_of(__ballot_sync(mask_, predicate, site));
  }
  template <class T>
  unsigned match_any(T value, emulator::Site site = __builtin_LINE()) const {
    return ranks_of(__match_any_sync(mask_, value, site));
  }

 protected:
  explicit LaneGroup(unsigned mask) : mask_(mask) {}

 private:
  unsigned lane_of(unsigned rank) const {
    unsigned rest = mask_;
    for (unsigned i = 0; i < rank; ++i) rest &= rest - 1;
    return static_cast<unsigned>(__ffs(static_cast<int>(rest)) - 1);
  }
  // Bit r of the result belongs to the thread of rank r.
  unsigned ranks_of(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank)
      if (lanes & (rest & (~rest + 1u))) result |= 1u << rank;
    return result;
  }
  unsigned mask_;
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public LaneGroup {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "the emulator has tiles of 1, 2, 4, 8, 16 or 32 threads");

 public:
  thread_block_tile() : LaneGroup(mask()) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return emulator_context.linear % Size; }
  unsigned meta_group_rank() const { return emulator_context.linear / Size; }
  unsigned meta_group_size() const { return (emulator_context.count + Size - 1) / Size; }

 private:
  static unsigned mask() {
    if constexpr (Size == 32) return 0xffffffffu;
    else return ((1u << Size) - 1u) << (emulator::lane() & ~(Size - 1u));
  }
};

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

class coalesced_group : public LaneGroup {
 public:
  explicit coalesced_group(unsigned mask) : LaneGroup(mask) {}
};
inline coalesced_group coalesced_threads(emulator::Site site = __builtin_LINE()) {
  return coalesced_group(__activemask(site));
}

template <class Group>
inline void sync(const Group& group, emulator::Site site = __builtin_LINE()) {
  group.sync(site);
}

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

// Every thread of the group gets the combination of all values. A butterfly where the size is a power of two.
template <class Group, class T, class Operation>
inline T reduce(const Group& group, T value, Operation operation, emulator::Site site = __builtin_LINE()) {
  const unsigned size = group.num_threads();
  if ((size & (size - 1)) == 0) {
    for (unsigned offset = size / 2; offset > 0; offset /= 2)
      value = operation(value, group.shfl_xor(value, offset, site));
    return value;
  }
  T total = group.shfl(value, 0, site);
  for (unsigned rank = 1; rank < size; ++rank) total = operation(total, group.shfl(value, rank, site));
  return total;
}

template <class Group, class T, class Operation>
inline T inclusive_scan(const Group& group, T value, Operation operation, emulator::Site site = __builtin_LINE()) {
  for (unsigned offset = 1; offset < group.num_threads(); offset *= 2) {
    const T other = group.shfl_up(value, offset, site);
    if (group.thread_rank() >= offset) value = operation(other, value);
  }
  return value;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value, emulator::Site site = __builtin_LINE()) {
  return inclusive_scan(group, value, plus<T>(), site);
}
template <class Group, class T, class Operation>
inline T exclusive_scan(const Group& group, T value, Operation operation, emulator::Site site = __builtin_LINE()) {
  const T before = group.shfl_up(inclusive_scan(group, value, operation, site), 1, site);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, emulator::Site site = __builtin_LINE()) {
  return exclusive_scan(group, value, plus<T>(), site);
}

// The copy has ended before the call returns, which every program that waits for it allows.
template <class Group, class T, class Count>
inline void memcpy_async(const Group& group, T* target, const T* source, Count bytes) {
  auto* to = reinterpret_cast<unsigned char*>(target);
  const auto* from = reinterpret_cast<const unsigned char*>(source);
  const std::size_t total = bytes;
  for (std::size_t i = group.thread_rank(); i < total; i += group.num_threads()) to[i] = from[i];
}
template <class Group>
inline void wait(const Group& group, emulator::Site site = __builtin_LINE()) {
  group.sync(site);
}
template <unsigned, class Group>
inline void wait_prior(const Group& group, emulator::Site site = __builtin_LINE()) {
  group.sync(site);
}

}  // namespace emulator_cooperative_groups
