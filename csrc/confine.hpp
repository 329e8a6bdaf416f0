// Confinement of the calling process for good: rlimits, landlock, seccomp. What the kernel lacks is reported, never
// silently skipped, so that the caller can warn or refuse.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "landlock.hpp"
#include "layers.hpp"
#include "seccomp_profiles.hpp"

namespace confine {

struct Request {
  std::string profile;                // tracer, compiler, nvrtc, program or gpu
  std::vector<std::string> readable;  // files and folders that may be read; executed as well by a compiler
  std::vector<std::string> writable;  // files and folders that may be changed as well
  std::map<std::string, long long> limits;  // cpu_s, memory_bytes, file_bytes, open_files, processes, stack_bytes
  int control_fd = 1;                 // the one descriptor that a program may write to
  Layers layers;                      // what is to be applied
};

struct Report {
  int landlock_abi = 0;  // 0: not in force
  bool seccomp = false;
  bool rlimits = false;
};

inline void set_limit(const std::string& name, long long value) {
  static const std::map<std::string, int> resources = {
      {"cpu_s", RLIMIT_CPU},         {"memory_bytes", RLIMIT_AS},  {"file_bytes", RLIMIT_FSIZE},
      {"open_files", RLIMIT_NOFILE}, {"processes", RLIMIT_NPROC}, {"stack_bytes", RLIMIT_STACK}};
  const auto found = resources.find(name);
  if (found == resources.end()) {
    std::string known;
    for (const auto& entry : resources) known += (known.empty() ? "" : ", ") + entry.first;
    throw std::invalid_argument("unknown limit '" + name + "': expected one of " + known);
  }
  if (value < 0) throw std::invalid_argument("limit " + name + " is negative");
  rlimit limit{};
  getrlimit(static_cast<decltype(RLIMIT_CPU)>(found->second), &limit);
  const auto wanted = static_cast<rlim_t>(value);
  // The hard limit stays below what the caller already has: a limit can only shrink.
  limit.rlim_max = limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max ? wanted : limit.rlim_max;
  limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
  if (setrlimit(static_cast<decltype(RLIMIT_CPU)>(found->second), &limit) != 0)
    throw std::runtime_error("cannot set limit " + name + ": " + std::strerror(errno));
}

inline void set_limits(const std::map<std::string, long long>& limits) {
  for (const auto& [name, value] : limits) set_limit(name, value);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// Everything but the seccomp filter. Returns the landlock ABI, 0 where it is missing or switched off. The process ends
// with the thread that started it: nothing of a program outlives its judge.
inline int restrict_resources(const Request& request) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw std::runtime_error(std::string("prctl(PR_SET_NO_NEW_PRIVS) failed: ") + std::strerror(errno));
  int landlock_abi = 0;
  if (request.layers.landlock)
    landlock_abi = landlock::restrict_self(request.readable, request.writable, request.profile == "compiler");
  if (request.layers.rlimits) set_limits(request.limits);  // last: landlock's rules need descriptors while they are made
  return landlock_abi;
}

inline seccomp::Filter filter_for(const Request& request) {
  if (request.profile == "tracer") return seccomp::tracer(!request.readable.empty());
  if (request.profile == "compiler") return seccomp::compiler();
  if (request.profile == "nvrtc") return seccomp::nvrtc();
  if (request.profile == "program") return seccomp::running_program(request.control_fd);
  if (request.profile == "gpu") return seccomp::gpu();
  throw std::invalid_argument("unknown profile '" + request.profile +
                              "': expected tracer, compiler, nvrtc, program or gpu");
}

// Confines the calling process; nothing undoes it. Throws on a wrong request, reports what the kernel lacks.
inline Report apply(const Request& request) {
  const seccomp::Filter filter = filter_for(request);
  Report report;
  report.rlimits = request.layers.rlimits;
  report.landlock_abi = restrict_resources(request);
  report.seccomp = request.layers.seccomp && filter.install();
  return report;
}

}  // namespace confine
