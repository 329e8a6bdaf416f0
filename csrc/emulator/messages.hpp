// What travels between the evaluator and the runner: fixed-size records over one socket. The parent believes none of
// it about values or times; a forged report can only end the session that forged it.
#pragma once
#include <cstdint>

namespace emulator {

constexpr std::uint32_t kMagic = 0x31554d45;  // "EMU1"

enum class CommandKind : std::uint32_t { kRun = 1, kReplay = 2, kStop = 3, kForget = 4 };

enum class Order : std::uint32_t { kForward = 0, kReverse = 1, kRandom = 2 };

struct Command {
  std::uint32_t magic;
  CommandKind kind;
  Order order;
  std::uint32_t guard_left;  // 1: buffers begin at a guard page, 0: they end at one
  std::uint64_t seed;
};

enum class ReportKind : std::uint32_t {
  kReady = 1,
  kDone = 2,
  // What a program did wrong.
  kOutOfBuffer = 10,
  kNullPointer = 11,
  kWildPointer = 12,
  kStackOverflow = 13,
  kOutOfDynamicShared = 14,
  kIndexOutOfArray = 15,
  kMisaligned = 16,
  kReadOnlyMemory = 17,
  kIntegerDivision = 20,
  kTrap = 21,
  kAssertion = 22,
  kIllegalInstruction = 23,
  kAborted = 24,
  kOutOfMemory = 25,
  kBarrierAfterExit = 30,
  kBarrierSites = 31,
  kWarpSites = 32,
  kLaneOutsideMask = 33,
  kDeadlock = 34,
  kSharedSlackWritten = 35,
  // What went wrong on our side.
  kCannotLoad = 90,
  kBadTape = 91,
};

struct Report {
  std::uint32_t magic = kMagic;
  ReportKind kind = ReportKind::kDone;
  std::int32_t step = -1;     // of the plan, -1 outside a launch
  std::uint32_t block[3] = {0, 0, 0};
  std::uint32_t thread[3] = {0, 0, 0};
  std::int32_t line = 0;      // of the program's CUDA text, 0 where unknown
  std::int32_t other_line = 0;
  std::int32_t buffer = -1;   // index into the plan's buffers
  std::int64_t offset = 0;    // bytes from the start of what was missed
  std::int64_t counts[3] = {0, 0, 0};  // threads waiting at a barrier, at a warp operation, ended; or see the kind
  std::uint64_t address = 0;
  std::uint64_t instruction = 0;  // offset in the loaded object, 0 where unknown
  std::int32_t is_write = -1;     // 1 write, 0 read, -1 unknown
  std::int32_t flags = 0;         // ready: landlock ABI << 1 | seccomp; done: 1 if the module's state changed
  char text[96] = {};             // a file name, a type or an expression
};
static_assert(sizeof(Command) == 24, "the parent packs this layout");
static_assert(sizeof(Report) == 200, "the parent unpacks this layout");

}  // namespace emulator
