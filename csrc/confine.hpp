// Confinement of the calling process for good: rlimits, landlock, seccomp. What the kernel lacks is reported, never
// silently skipped, so that the caller can warn or refuse.
#pragma once
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "landlock.hpp"
#include "seccomp.hpp"

namespace confine {

struct Request {
  std::string profile;                // tracer, compiler or program
  std::vector<std::string> readable;  // files and folders that may be read and executed
  std::vector<std::string> writable;  // files and folders that may be changed as well
  std::map<std::string, long long> limits;  // cpu_s, memory_bytes, file_bytes, open_files, processes, stack_bytes
  int control_fd = 1;                 // the one descriptor that a program may write to
};

struct Report {
  int landlock_abi = 0;  // 0: this kernel has no landlock
  bool seccomp = false;  // false: this kernel has no seccomp filters
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

// rlimits, no_new_privs and landlock: everything but the seccomp filter. Returns the landlock ABI, 0 if missing.
inline int restrict_resources(const Request& request) {
  set_limits(request.limits);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw std::runtime_error(std::string("prctl(PR_SET_NO_NEW_PRIVS) failed: ") + std::strerror(errno));
  return landlock::restrict_self(request.readable, request.writable);
}

inline seccomp::Filter filter_for(const Request& request) {
  if (request.profile == "tracer") return seccomp::tracer(!request.readable.empty());
  if (request.profile == "compiler") return seccomp::compiler();
  if (request.profile == "program") return seccomp::running_program(request.control_fd);
  throw std::invalid_argument("unknown profile '" + request.profile + "': expected tracer, compiler or program");
}

// Confines the calling process; nothing undoes it. Throws on a wrong request, reports what the kernel lacks.
inline Report apply(const Request& request) {
  const seccomp::Filter filter = filter_for(request);
  Report report;
  report.landlock_abi = restrict_resources(request);
  report.seccomp = filter.install();
  return report;
}

}  // namespace confine
