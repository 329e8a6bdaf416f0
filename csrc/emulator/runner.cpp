// emulator-runner: the confined process that executes one program. It holds the program's inputs and what the program
// writes, never an expected value; the evaluator reads results and CPU time from outside.
//
//   emulator-runner CONTROL_FD ARENA_FD TAPE_FD OBJECT THREADS EXTRA_MEMORY_BYTES CPU_SECONDS LAYERS
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine.hpp"
#include "device_heap.hpp"
#include "executor.hpp"
#include "messages.hpp"
#include "process_image.hpp"
#include "reporting.hpp"
#include "signals.hpp"
#include "tape_check.hpp"

namespace {

using emulator::Report;
using emulator::ReportKind;

struct Options {
  int control_fd, arena_fd, tape_fd;
  const char* object;
  int threads;
  long long extra_memory_bytes, cpu_seconds;
  confine::Layers layers;
};

[[noreturn]] void fail(ReportKind kind, const std::string& why) {
  Report report;
  report.kind = kind;
  emulator::set_text(report, why.c_str());
  emulator::end_with(report);
}

Options parse(char** argv) {
  return {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), argv[4],
          std::atoi(argv[5]), std::atoll(argv[6]), std::atoll(argv[7]), confine::Layers::parse(argv[8])};
}

emulator::Tape read_tape(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) throw std::runtime_error("cannot read the tape");
  std::vector<std::uint64_t> words(static_cast<std::size_t>(info.st_size) / sizeof(std::uint64_t));
  char* to = reinterpret_cast<char*>(words.data());
  std::size_t done = 0, total = words.size() * sizeof(std::uint64_t);
  while (done < total) {
    const ssize_t got = pread(fd, to + done, total - done, static_cast<off_t>(done));
    if (got <= 0) throw std::runtime_error("cannot read the tape");
    done += static_cast<std::size_t>(got);
  }
  close(fd);
  const emulator::Tape tape = emulator::TapeReader(words.data(), words.size()).read();
  emulator::TapeCheck::all(tape);
  return tape;
}

long long address_space_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long long pages = 0;
  if (file != nullptr) {
    if (std::fscanf(file, "%lld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

// Everything but the seccomp filters. The memory limit is set on top of what is mapped already.
int restrict_resources(const Options& options) {
  confine::Request request;
  request.profile = "program";
  request.readable = {options.object};
  request.layers = options.layers;
  request.limits = {{"memory_bytes", address_space_bytes() + options.extra_memory_bytes},
                    {"cpu_s", options.cpu_seconds},
                    {"file_bytes", 0}};
  return confine::restrict_resources(request);
}

bool receive(emulator::Command* command) {
  char* to = reinterpret_cast<char*>(command);
  std::size_t left = sizeof *command;
  while (left > 0) {
    const ssize_t got = read(emulator::control_fd, to, left);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got, left -= static_cast<std::size_t>(got);
  }
  return command->magic == emulator::kMagic;
}

// Between replays nothing survives that a program could keep results in: no globals, stacks, shared memory, heap blocks,
// floating-point modes, nor anything of the runner's own. Buffers are the evaluator's part.
void forget(emulator::Launcher& launcher, emulator::Module& module) {
  const int used_stacks = launcher.used_stacks();
  emulator::process_image.restore();  // first: what follows goes by the runner's own tables
  module.restore_state();
  launcher.forget(used_stacks);
  emulator::device_heap.forget();
  std::fesetenv(FE_DFL_ENV);
}

// One command; false where there is none any more. Frames below it are wiped when it is to forget.
[[gnu::noinline]] bool obey(emulator::Executor& executor, emulator::Launcher& launcher, emulator::Module& module) {
  emulator::Command command{};
  if (!receive(&command) || command.kind == emulator::CommandKind::kStop) return false;
  Report report;
  report.kind = ReportKind::kDone;
  if (command.kind == emulator::CommandKind::kForget) {
    forget(launcher, module);
    emulator::send(report);
    return true;
  }
  const bool judged = command.kind == emulator::CommandKind::kRun;
  emulator::faulting_guard_left = command.guard_left != 0;
  emulator::device_heap.fill_blocks(judged);
  if (judged) {
    module.restore_state();
    emulator::device_heap.forget();
  }
  executor.run(command.order, command.seed, command.guard_left != 0);
  report.flags = judged && module.state_changed() ? 1 : 0;
  emulator::send(report);
  return true;
}

// Only programs are kept from writing to what is not theirs: helper threads have stacks of their own among it.
void keep_image(emulator::Launcher& launcher, const emulator::Module& module, const void* floor) {
  if (launcher.has_helpers()) return;
  const auto exempt = [](const void* start, std::size_t bytes) { emulator::process_image.exempt(start, bytes); };
  launcher.each_wiped(exempt);
  module.each_segment(exempt);
  exempt(emulator::device_heap.base(), emulator::DeviceHeap::kBytes);
  if (!emulator::process_image.keep(floor))
    fail(ReportKind::kCannotLoad, "cannot keep the runner's memory from programs: is /proc/self/maps there, and short?");
}

// Nothing in its frame changes once the image is taken.
[[noreturn, gnu::noinline]] void serve(emulator::Executor& executor, emulator::Launcher& launcher,
                                       emulator::Module& module, const Report& ready, bool confined, int control_fd) {
  keep_image(launcher, module, __builtin_alloca(16));
  if (confined) confine::seccomp::running_program(control_fd).install();
  emulator::send(ready);
  while (obey(executor, launcher, module)) {
  }
  _exit(0);
}

[[noreturn]] void run(const Options& options) {
  const emulator::Tape tape = read_tape(options.tape_fd);
  auto& arena = *new emulator::Arena;
  emulator::process_image.open_maps();
  if (!emulator::device_heap.map()) fail(ReportKind::kOutOfMemory, "cannot map the device's heap");
  if (!arena.map(options.arena_fd, tape.buffers)) fail(ReportKind::kOutOfMemory, "cannot map the plan's buffers");
  close(options.arena_fd);
  emulator::faulting_arena = &arena;
  emulator::install_signal_handlers();

  Report ready;
  ready.kind = ReportKind::kReady;
  const int landlock_abi = restrict_resources(options);
  auto& launcher = *new emulator::Launcher(options.threads, tape.most_block_threads());
  if (options.layers.rlimits) confine::set_limit("processes", 0);  // after the helper threads, which count as processes
  const bool confined = options.layers.seccomp && confine::seccomp::loading_program(options.control_fd).install();
  ready.flags = landlock_abi << 1 | (confined ? 1 : 0);

  auto& module = *new emulator::Module;
  const std::string problem = module.load(options.object);
  if (!problem.empty()) fail(ReportKind::kCannotLoad, problem);
  emulator::faulting_module = &module;
  launcher.use(&module);
  module.static_shared();  // the loader makes its entry now
  emulator::Executor executor(tape, arena, module, launcher);
  serve(executor, launcher, module, ready, confined, options.control_fd);
}

}  // namespace

// The C library's heap is read-only while a program runs.
void* operator new(std::size_t bytes) {
  void* block = emulator::runner_memory.allocate(bytes);
  if (block == nullptr) fail(ReportKind::kOutOfMemory, "out of memory");
  return block;
}
void operator delete(void* block) noexcept { emulator::runner_memory.free(block); }
void operator delete(void* block, std::size_t) noexcept { emulator::runner_memory.free(block); }

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fprintf(stderr, "emulator-runner is started by evaluator.devices.cpu; it is no command of its own\n");
    return 2;
  }
  emulator::control_fd = std::atoi(argv[1]);
  try {
    run(parse(argv));
  } catch (const std::bad_alloc&) {
    fail(ReportKind::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    fail(ReportKind::kBadTape, error.what());
  }
}
