// Runs a launch in two halves of which neither sees what the other wrote, then joins what they wrote. Threads that have
// no means to wait for each other may not depend on one another: a result that changes shows a race, such as an update
// that is read, changed and written without an atomic operation, which no order of whole threads would show.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "launcher.hpp"

namespace emulator {

struct Bytes {
  char* start;
  std::size_t count;
};

class Halves {
 public:
  static constexpr std::size_t kMostBytes = 64u << 20;  // that a launch may write to; larger ones run as a whole

  // `written`: all memory that the launch may write to.
  Halves(Launcher& launcher, const std::vector<Bytes>& written) : launcher_(launcher), written_(written) {
    for (const Bytes& each : written) total_ += each.count;
  }

  void run(Launch launch) {
    const std::uint64_t blocks = static_cast<std::uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
    const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
    if (launcher_.has_helpers() || total_ > kMostBytes || blocks * threads < 2) return launcher_.run(launch);
    save(before_);
    if (threads > 1 && in_halves(launch, &Launch::threads)) return;
    if (blocks > 1 && in_halves(launch, &Launch::blocks)) return;
    launch.threads = launch.blocks = Half::kBoth;
    launcher_.run(launch);
  }

 private:
  // Returns false where threads waited for each other; memory is then as it was.
  bool in_halves(Launch& launch, Half Launch::*part) {
    launch.*part = Half::kFirst;
    launcher_.run(launch);
    const bool together = launcher_.communicated();
    if (!launcher_.abandoned()) {
      if (!together) {
        save(first_);
        load(before_);
      }
      launch.*part = Half::kSecond;
      launcher_.run(launch);
    }
    launch.*part = Half::kBoth;
    if (launcher_.abandoned()) {
      load(before_);
      return false;
    }
    if (!together) join();
    return true;
  }

  void save(std::vector<char>& to) const {
    to.resize(total_);
    char* at = to.data();
    for (const Bytes& each : written_) at = static_cast<char*>(std::memcpy(at, each.start, each.count)) + each.count;
  }
  void load(const std::vector<char>& from) const {
    const char* at = from.data();
    for (const Bytes& each : written_) {
      std::memcpy(each.start, at, each.count);
      at += each.count;
    }
  }
  // Bytes that the first half changed go over what the second one left.
  void join() const {
    const char *before = before_.data(), *first = first_.data();
    for (const Bytes& each : written_) {
      for (std::size_t i = 0; i < each.count; ++i) each.start[i] = first[i] != before[i] ? first[i] : each.start[i];
      before += each.count, first += each.count;
    }
  }

  Launcher& launcher_;
  const std::vector<Bytes>& written_;
  std::size_t total_ = 0;
  std::vector<char> before_, first_;
};

}  // namespace emulator
