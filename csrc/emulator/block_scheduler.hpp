// Runs the threads of one block after another on one OS thread. A thread gets a stack of its own only when an earlier
// one is suspended, so a kernel without barriers runs as a plain loop.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "fiber_pool.hpp"
#include "warp_groups.hpp"

namespace emulator {

constexpr unsigned kMaxBlockThreads = 1024;

using KernelEntry = void (*)(void** arguments);

// Which threads of a block run: all, or one half of them in an order that both halves are taken from.
enum class Half { kBoth, kFirst, kSecond };

struct BlockShape {
  dim3 grid, block;
  Order order = Order::kForward;
  std::uint64_t seed = 0;
  Half half = Half::kBoth;
};

class BlockScheduler {
 public:
  // The scheduler serves the OS thread that makes it.
  BlockScheduler() {
    emulator_context.exited = exited_.data();
    emulator_context.order = order_.data();
    current_ = this;
  }
  ~BlockScheduler() { current_ = nullptr; }
  BlockScheduler(const BlockScheduler&) = delete;
  BlockScheduler& operator=(const BlockScheduler&) = delete;

  static BlockScheduler* current() { return current_; }
  const FiberPool& stacks() const { return stacks_; }
  void forget(int used_stacks) { stacks_.forget(used_stacks); }
  void prepare_stacks(unsigned threads) { stacks_.prepare(threads); }

  // Called once per launch, before its blocks.
  void prepare(const BlockShape& shape) {
    count_ = shape.block.x * shape.block.y * shape.block.z;
    Context& context = emulator_context;
    context.spins = 0;
    context.block_dim = shape.block;
    context.grid_dim = shape.grid;
    context.count = count_;
    const bool ready_made = same_extent(shape.block, prepared_for_) && shape.order == order_kind_;
    order_kind_ = shape.order;
    seed_ = shape.seed;
    half_ = shape.half;
    abandoned_block_ = false;
    if (ready_made) return;  // plans repeat their launches; a random order is drawn for every block anyway
    prepared_for_ = shape.block;
    for (unsigned linear = 0; linear < count_; ++linear) {
      const unsigned rest = linear / shape.block.x;
      slots_[linear] = {{linear % shape.block.x, rest % shape.block.y, rest / shape.block.y}, linear};
    }
    std::copy_n(slots_.begin(), count_, order_.begin());
    if (shape.order == Order::kReverse) std::reverse(order_.begin(), order_.begin() + count_);
    for (unsigned w = 0; w * kLanes < count_; ++w) {
      const unsigned lanes = std::min(count_ - w * kLanes, kLanes);
      warps_[w].existing = lanes == kLanes ? ~0u : (1u << lanes) - 1u;
    }
  }

  // Runs every thread of the block to its end. `number` is the block's linear index.
  void run(KernelEntry kernel, void** arguments, uint3 index, std::uint64_t number) {
    kernel_ = kernel;
    arguments_ = arguments;
    Context& context = emulator_context;
    context.block_index = index;
    context.next = 0;
    context.attention = 0;
    context.count = count_;
    std::memset(exited_.data(), 0, count_);
    if (order_kind_ == Order::kRandom) {
      if (half_ != Half::kBoth) std::copy_n(slots_.begin(), count_, order_.begin());
      random_.seed(static_cast<std::uint32_t>(seed_ * 0x9e3779b97f4a7c15ull + number));
      std::shuffle(order_.begin(), order_.begin() + count_, random_);
    }
    if (half_ == Half::kFirst) context.count = count_ / 2;
    if (half_ == Half::kSecond) context.next = count_ / 2;
    waiting_ = 0;
    ready_first_ = ready_last_ = 0;
    if (context.next < context.count) start_fiber(main_);
  }

  // Whether threads of a half waited for others, so that nothing can be said of halves. The block was left as it was.
  bool abandoned() const { return abandoned_block_; }

  int barrier(int kind, int predicate, Site site) {
    if (half_ != Half::kBoth) abandon();
    if (waiting_ == 0) {
      barrier_site_ = site;
      barrier_kind_ = kind;
      barrier_true_ = 0;
    } else if (site != barrier_site_ || kind != barrier_kind_) {
      report_barrier_sites(site);
    }
    barrier_true_ += predicate;
    at_barrier_[waiting_++] = static_cast<std::uint16_t>(emulator_context.linear);
    if (waiting_ == count_) {
      release_barrier();
    } else {
      check_barrier(emulator_context.next - emulator_context.attention - 1);
      suspend();
    }
    return barrier_result_;
  }

  std::uint64_t warp_operation(int operation, unsigned mask, std::uint64_t value, int source, Site site) {
    const unsigned linear = emulator_context.linear, lane = linear % kLanes;
    Warp& warp = warps_[linear / kLanes];
    warp.value[lane] = value;
    warp.source[lane] = static_cast<std::uint32_t>(source) % kLanes;
    meet(warp, linear, operation, mask, site);
    return warp.result[lane];
  }

  void warp_collective(unsigned mask, void* payload, CollectiveFunction function, Site site) {
    const unsigned linear = emulator_context.linear;
    Warp& warp = warps_[linear / kLanes];
    warp.payload[linear % kLanes] = payload;
    warp.function = function;
    meet(warp, linear, kCollective, mask, site);
  }

  // The current thread has ended. Continues another, or returns with the context of one to be started here.
  void thread_ended() {
    Context& context = emulator_context;
    if (context.attention != 0) {
      settle_warp(context.linear / kLanes);
      check_barrier(context.next - context.attention);
      if (!has_ready() && context.next >= context.count) resolve_stall();
    }
    if (has_ready()) {
      stacks_.release(running_fiber_);
      resume(abandoned_);
    } else if (context.next < context.count) {
      take_next();
    } else {
      stacks_.release(running_fiber_);
      switch_stack(abandoned_, main_);
    }
  }

  // Lets every other thread that can run go first.
  void yield() {
    if (half_ != Half::kBoth) abandon();
    Context& context = emulator_context;
    if (!has_ready() && context.next >= context.count) return;
    const unsigned linear = context.linear;
    mark_suspended(linear);
    push_ready(linear);
    if (context.next < context.count) start_fiber(states_[linear]);
    else resume(states_[linear]);
  }

 private:
  static void fiber_main();

  static bool same_extent(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
  bool has_ready() const { return ready_first_ != ready_last_; }
  void push_ready(unsigned linear) {
    ready_[ready_last_++ % kMaxBlockThreads] = static_cast<std::uint16_t>(linear);
  }
  void mark_suspended(unsigned linear) {
    ++emulator_context.attention;
    fiber_of_[linear] = running_fiber_;
  }

  // Only the running thread has a stack: whoever would wait ends its half.
  void abandon() {
    abandoned_block_ = true;
    stacks_.release(running_fiber_);
    switch_stack(abandoned_, main_);
  }

  void take_next() {
    Context& context = emulator_context;
    const ThreadSlot& slot = context.order[context.next++];
    context.thread_index = slot.index;
    context.linear = slot.linear;
  }

  // Starts the next thread on a stack of its own and keeps the current one in `from`.
  void start_fiber(Suspended& from) {
    running_fiber_ = stacks_.acquire();
    take_next();
    Suspended& fresh = states_[emulator_context.linear];
    const Stack& stack = stacks_.stack(running_fiber_);
    prepare_stack(fresh, stack.start, stack.bytes, &fiber_main);
    switch_stack(from, fresh);
  }

  void resume(Suspended& from) {
    const unsigned linear = ready_[ready_first_++ % kMaxBlockThreads];
    Context& context = emulator_context;
    --context.attention;
    context.thread_index = slots_[linear].index;
    context.linear = linear;
    running_fiber_ = fiber_of_[linear];
    if (&from != &states_[linear]) switch_stack(from, states_[linear]);
  }

  void suspend() {
    Context& context = emulator_context;
    const unsigned linear = context.linear;
    mark_suspended(linear);
    if (!has_ready() && context.next < context.count) return start_fiber(states_[linear]);
    if (!has_ready()) resolve_stall();
    resume(states_[linear]);
  }

  // The current lane joins the others that its operation names, and goes on once all of them have.
  void meet(Warp& warp, unsigned linear, int operation, unsigned mask, Site site) {
    if (half_ != Half::kBoth) abandon();
    const unsigned bit = 1u << linear % kLanes;
    warp.operation[linear % kLanes] = static_cast<std::uint32_t>(operation);
    warp.site[linear % kLanes] = site;
    if (operation == kActiveMask) {
      warp.converging |= bit;
      return suspend();
    }
    if ((mask & bit) == 0) report_lane_outside(linear % kLanes, mask, site);
    WarpGroup& group = warp.group_of(mask);
    group.arrived |= bit;
    if ((needed(warp, linear / kLanes, mask) & ~group.arrived) == 0) complete(warp, linear / kLanes, group, ~bit);
    else suspend();
  }

  unsigned exited_lanes(unsigned warp_number) const {
    unsigned lanes = 0;
    const unsigned char* exited = exited_.data() + warp_number * kLanes;
    for (unsigned lane = 0; lane < kLanes; ++lane) lanes |= static_cast<unsigned>(exited[lane]) << lane;
    return lanes & warps_[warp_number].existing;
  }
  // Ended lanes are not waited for, as the device does not either.
  unsigned needed(const Warp& warp, unsigned warp_number, unsigned mask) const {
    const unsigned named = mask & warp.existing;
    const unsigned exited = emulator_context.next - emulator_context.attention - 1;
    return exited == 0 ? named : named & ~exited_lanes(warp_number);
  }

  // `sleeping`: the lanes that may have been suspended, which is all but a running one.
  void complete(Warp& warp, unsigned warp_number, WarpGroup& group, unsigned sleeping) {
    const unsigned arrived = group.arrived;
    warp.erase(group);
    if (const unsigned others = mismatched_lanes(warp, arrived); others != 0) report_warp_sites(warp, arrived, others);
    compute_warp_operation(warp, arrived);
    for_each_lane(arrived & sleeping, [&](unsigned lane) { push_ready(warp_number * kLanes + lane); });
  }

  // A lane of the warp has ended: operations that named it may be complete now.
  void settle_warp(unsigned warp_number) {
    Warp& warp = warps_[warp_number];
    for (unsigned i = 0; i < warp.count;) {
      WarpGroup& group = warp.groups[i];
      const unsigned left = group.mask & warp.existing & ~exited_lanes(warp_number) & ~group.arrived;
      if (left == 0) complete(warp, warp_number, group, ~0u);
      else ++i;
    }
  }

  // Nothing can run. Lanes that asked for the active mask are converged now; if there is none, it is a deadlock.
  void resolve_stall() {
    if (emulator_context.attention == 0) return;
    for (unsigned w = 0; w * kLanes < count_; ++w) {
      Warp& warp = warps_[w];
      if (warp.converging == 0) continue;
      const Site site = warp.site[static_cast<unsigned>(__builtin_ctz(warp.converging))];
      unsigned together = 0;
      for_each_lane(warp.converging, [&](unsigned lane) { together |= warp.site[lane] == site ? 1u << lane : 0u; });
      warp.converging &= ~together;
      compute_warp_operation(warp, together);
      for_each_lane(together, [&](unsigned lane) { push_ready(w * kLanes + lane); });
    }
    if (!has_ready()) report_deadlock();
  }

  // Threads that have ended are all that is missing at the barrier: they should have met it.
  void check_barrier(unsigned exited) {
    if (waiting_ != 0 && exited != 0 && waiting_ + exited == count_) report_barrier_after_exit(exited);
  }

  void release_barrier() {
    const int all = barrier_true_ == static_cast<int>(waiting_), any = barrier_true_ > 0;
    barrier_result_ = barrier_kind_ == kCount ? barrier_true_ : barrier_kind_ == kAnd ? all : any;
    const unsigned sleeping = waiting_ - 1;  // the last to arrive is running
    if (order_kind_ == Order::kRandom) std::shuffle(at_barrier_, at_barrier_ + sleeping, random_);
    std::swap(ready_, at_barrier_);  // with every thread at the barrier, nothing else is ready
    ready_first_ = 0, ready_last_ = sleeping;
    waiting_ = 0;
  }

  // Reports are out of line: their records must not widen the stack frames of a suspended thread.
  [[noreturn, gnu::noinline, gnu::cold]] void report_barrier_sites(Site site) const {
    Report report = here(ReportKind::kBarrierSites);
    report.line = line_of(site);
    report.other_line = line_of(barrier_site_);
    report.counts[0] = waiting_;
    end_with(report);
  }
  [[noreturn, gnu::noinline, gnu::cold]] void report_barrier_after_exit(unsigned exited) const {
    Report report = here(ReportKind::kBarrierAfterExit);
    report.line = line_of(barrier_site_);
    report.counts[0] = waiting_, report.counts[2] = exited;
    const auto ended = std::find(exited_.begin(), exited_.begin() + count_, 1) - exited_.begin();
    const uint3 index = slots_[static_cast<std::size_t>(ended)].index;
    report.thread[0] = index.x, report.thread[1] = index.y, report.thread[2] = index.z;
    end_with(report);
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void report_lane_outside(unsigned lane, unsigned mask, Site site) {
    Report report = here(ReportKind::kLaneOutsideMask);
    report.line = line_of(site);
    report.counts[0] = lane, report.counts[1] = mask;
    end_with(report);
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void report_warp_sites(const Warp& warp, unsigned arrived,
                                                                      unsigned others) {
    const auto first = static_cast<unsigned>(__builtin_ctz(arrived));
    const auto other = static_cast<unsigned>(__builtin_ctz(others));
    Report report = here(ReportKind::kWarpSites);
    report.line = line_of(warp.site[first]), report.other_line = line_of(warp.site[other]);
    report.counts[0] = first, report.counts[1] = other;
    end_with(report);
  }
  [[noreturn, gnu::noinline, gnu::cold]] void report_deadlock() const {
    const auto suspended = static_cast<std::int64_t>(emulator_context.attention);
    Report report = here(ReportKind::kDeadlock);
    report.counts[0] = waiting_;
    report.counts[1] = suspended - waiting_;
    report.counts[2] = static_cast<std::int64_t>(count_) - suspended;
    report.line = waiting_ > 0 ? line_of(barrier_site_) : 0;
    for (unsigned w = 0; w * kLanes < count_; ++w) {
      if (warps_[w].count == 0) continue;
      report.other_line = line_of(warps_[w].site[static_cast<unsigned>(__builtin_ctz(warps_[w].groups[0].arrived))]);
      break;
    }
    end_with(report);
  }

  FiberPool stacks_;
  Suspended main_, abandoned_;
  KernelEntry kernel_ = nullptr;
  void** arguments_ = nullptr;
  unsigned count_ = 0;
  int running_fiber_ = 0;  // threads that end without a switch hand it on to the next
  unsigned ready_first_ = 0, ready_last_ = 0;
  unsigned waiting_ = 0;  // threads at the barrier
  Site barrier_site_ = 0;
  int barrier_kind_ = 0, barrier_true_ = 0, barrier_result_ = 0;
  Order order_kind_ = Order::kForward;
  dim3 prepared_for_{0, 0, 0};  // block shape that the tables below describe
  std::uint64_t seed_ = 0;
  Half half_ = Half::kBoth;
  bool abandoned_block_ = false;
  std::minstd_rand random_;
  std::array<std::array<std::uint16_t, kMaxBlockThreads>, 2> queues_{};
  std::uint16_t *ready_ = queues_[0].data(), *at_barrier_ = queues_[1].data();
  std::array<int, kMaxBlockThreads> fiber_of_{};  // of suspended threads
  std::array<ThreadSlot, kMaxBlockThreads> slots_{}, order_{};
  std::array<unsigned char, kMaxBlockThreads> exited_{};
  std::array<Suspended, kMaxBlockThreads> states_{};
  std::array<Warp, kMaxBlockThreads / kLanes> warps_{};

  static inline thread_local BlockScheduler* current_ = nullptr;
};

inline void BlockScheduler::fiber_main() {
  current_->kernel_(current_->arguments_);
  __builtin_unreachable();  // the entry runs threads until nothing is left, and leaves by switching away
}

}  // namespace emulator
