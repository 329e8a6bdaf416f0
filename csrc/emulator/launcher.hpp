// Runs the blocks of a launch, on one OS thread or several. Shared memory is poisoned before every block.
#pragma once
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "block_scheduler.hpp"
#include "module.hpp"

namespace emulator {

struct Launch {
  KernelEntry kernel = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;  // dynamic
  void** arguments = nullptr;
  Order order = Order::kForward;
  std::uint64_t seed = 0;
  bool guard_left = false;
  Half threads = Half::kBoth;  // of each block
  Half blocks = Half::kBoth;   // of the grid
};

// Dynamic shared memory of one OS thread, between two guard areas.
class DynamicShared {
 public:
  static constexpr std::size_t kCapacity = 256 * 1024;  // more than the 227 kB of any device

  bool map() {
    void* memory = mmap(nullptr, kCapacity + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    start_ = static_cast<char*>(memory) + kGuard;
    return mprotect(start_, kCapacity, PROT_READ | PROT_WRITE) == 0;
  }

  // The block's memory, at one end of the mapping; 16 bytes of alignment as on a device.
  char* place(std::size_t bytes, bool guard_left) {
    bytes_ = bytes;
    at_ = guard_left ? start_ : start_ + kCapacity - ((bytes + 15) & ~std::size_t{15});
    return at_;
  }
  void forget() { madvise(start_, kCapacity, MADV_DONTNEED); }
  template <class Visit>
  void each_range(Visit visit) const {
    visit(start_, kCapacity);
  }
  void poison() {
    std::memset(at_, 0xff, bytes_);
    std::memset(at_ + bytes_, kCanary, slack());
  }
  // Bytes behind the block's memory that no guard page covers.
  bool slack_written() const {
    for (std::size_t i = 0; i < slack(); ++i)
      if (static_cast<unsigned char>(at_[bytes_ + i]) != kCanary) return true;
    return false;
  }
  // Distance from the block's memory, for an address in the mapping or its guards.
  bool holds(std::uint64_t address, std::int64_t* offset) const {
    const auto first = reinterpret_cast<std::uint64_t>(start_) - kGuard;
    if (start_ == nullptr || address < first || address >= first + kCapacity + 2 * kGuard) return false;
    *offset = static_cast<std::int64_t>(address - reinterpret_cast<std::uint64_t>(at_));
    return true;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kGuard = 256 * 1024;
  static constexpr unsigned char kCanary = 0xa5;
  std::size_t slack() const {
    return std::min<std::size_t>(64, static_cast<std::size_t>(start_ + kCapacity - (at_ + bytes_)));
  }

  char *start_ = nullptr, *at_ = nullptr;
  std::size_t bytes_ = 0;
};

inline thread_local DynamicShared* dynamic_shared = nullptr;

// Visits 0 .. count-1 in the launch's order. Random: a linear map whose factor has no divisor in common with count.
class BlockOrder {
 public:
  BlockOrder(Order order, std::uint64_t seed, std::uint64_t count) : order_(order), count_(count) {
    if (order != Order::kRandom) return;
    std::mt19937_64 random(seed);
    offset_ = random() % count;
    do factor_ = random() % count | 1;
    while (std::gcd(factor_, count) != 1);
  }
  std::uint64_t at(std::uint64_t i) const {
    if (order_ == Order::kForward) return i;
    if (order_ == Order::kReverse) return count_ - 1 - i;
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(factor_) * i + offset_) % count_);
  }

 private:
  Order order_;
  std::uint64_t count_, factor_ = 1, offset_ = 0;
};

class Launcher {
 public:
  // Helper threads start here and now, since the process cannot start any once it is confined.
  // `most_block_threads`: of any launch to come, whose stacks are made now as well.
  Launcher(int threads, unsigned most_block_threads) : most_block_threads_(most_block_threads) {
    for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { serve(); });
    own_ = std::make_unique<Worker>(most_block_threads);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ready_helpers_ == helpers_.size(); });
  }

  void use(const Module* module) { module_ = module; }
  int used_stacks() const { return own_->scheduler.stacks().used(); }
  bool has_helpers() const { return !helpers_.empty(); }

  // Of the last launch on this thread: whether a half of a block was given up, and whether threads may have told others
  // something, by atomics or fences.
  bool abandoned() const { return own_->scheduler.abandoned(); }
  static bool communicated() { return emulator_context.spins != 0; }

  // What `forget` wipes.
  template <class Visit>
  void each_wiped(Visit visit) const {
    own_->scheduler.stacks().each_slab(visit);
    own_->shared.each_range(visit);
  }

  // Wipes what kernels left on the stacks and in the dynamic shared memory of this thread. Timed replays use no other.
  void forget(int used_stacks) {
    own_->scheduler.forget(used_stacks);
    own_->shared.forget();
  }

  void run(const Launch& launch) {
    launch_ = &launch;
    blocks_ = static_cast<std::uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
    end_ = launch.blocks == Half::kFirst ? blocks_ / 2 : blocks_;
    next_.store(launch.blocks == Half::kSecond ? blocks_ / 2 : 0, std::memory_order_relaxed);
    const bool shared = !helpers_.empty() && blocks_ > 1;
    if (shared) {
      std::lock_guard<std::mutex> lock(mutex_);
      ++generation_;
      busy_ = helpers_.size();
    }
    if (shared) changed_.notify_all();
    own_->run(*this);
    if (!shared) return;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  struct Worker {
    BlockScheduler scheduler;
    DynamicShared shared;
    std::unique_ptr<char[]> signal_stack{new char[kSignalStackBytes]};

    explicit Worker(unsigned most_block_threads) {
      scheduler.prepare_stacks(most_block_threads);
      if (!shared.map()) end_with(here(ReportKind::kOutOfMemory));
      dynamic_shared = &shared;
      stack_t stack{};
      stack.ss_sp = signal_stack.get();
      stack.ss_size = kSignalStackBytes;
      sigaltstack(&stack, nullptr);
    }

    void run(Launcher& launcher) {
      const Launch& launch = *launcher.launch_;
      scheduler.prepare({launch.grid, launch.block, launch.order, launch.seed, launch.threads});
      emulator_context.dynamic_shared = shared.place(launch.shared_bytes, launch.guard_left);
      char* fixed = launcher.module_->static_shared();
      const std::size_t fixed_bytes = launcher.module_->static_shared_bytes();
      const BlockOrder order(launch.order, launch.seed, launcher.blocks_);
      for (;;) {
        const std::uint64_t i = launcher.next_.fetch_add(1, std::memory_order_relaxed);
        if (i >= launcher.end_ || scheduler.abandoned()) return;
        const std::uint64_t number = order.at(i), row = number / launch.grid.x;
        if (fixed_bytes != 0) std::memset(fixed, 0xff, fixed_bytes);
        if (launch.shared_bytes != 0) shared.poison();
        scheduler.run(launch.kernel, launch.arguments,
                      {static_cast<unsigned>(number % launch.grid.x), static_cast<unsigned>(row % launch.grid.y),
                       static_cast<unsigned>(row / launch.grid.y)},
                      number);
        if (launch.shared_bytes != 0 && shared.slack_written()) end_with(here(ReportKind::kSharedSlackWritten));
      }
    }
  };

  void serve() {
    Worker worker(most_block_threads_);
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    ++ready_helpers_;
    changed_.notify_all();
    for (;;) {
      changed_.wait(lock, [&] { return generation_ != seen; });
      seen = generation_;
      lock.unlock();
      worker.run(*this);
      lock.lock();
      if (--busy_ == 0) changed_.notify_all();
    }
  }

  static constexpr std::size_t kSignalStackBytes = 64 * 1024;

  const unsigned most_block_threads_;
  const Module* module_ = nullptr;
  const Launch* launch_ = nullptr;
  std::uint64_t blocks_ = 0, end_ = 0, generation_ = 0;
  std::atomic<std::uint64_t> next_{0};
  std::size_t busy_ = 0, ready_helpers_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Worker> own_;
  std::vector<std::thread> helpers_;  // never joined: the process ends with _exit
};

}  // namespace emulator
