// Landlock: the calling thread and its children may touch only the listed files. Own declarations of the kernel's
// structures, so that old system headers still build it; the kernel's ABI version decides what is asked of it.
#pragma once
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace confine {

namespace landlock {
// The same numbers on every architecture, since they are younger than the unified table.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr std::uint32_t kQueryVersion = 1;
constexpr int kRulePathBeneath = 1;

struct RulesetAttr {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;  // ABI 4
  std::uint64_t scoped;              // ABI 6
};
struct __attribute__((packed)) PathBeneathAttr {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
};

constexpr std::uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr std::uint64_t kTruncate = 1 << 14, kIoctlDevice = 1 << 15;
constexpr std::uint64_t kFileRights = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;

inline std::uint64_t handled_rights(int abi) {
  if (abi >= 5) return (1ull << 16) - 1;
  if (abi >= 3) return (1ull << 15) - 1;
  if (abi == 2) return (1ull << 14) - 1;
  return (1ull << 13) - 1;
}

// ABI version of the running kernel, 0 where landlock is missing or switched off.
inline int abi_version() {
  const long version = syscall(kCreateRuleset, nullptr, 0, kQueryVersion);
  return version < 0 ? 0 : static_cast<int>(version);
}

// A path that does not exist needs no rule: what has no rule cannot be opened.
inline void allow(int ruleset, const std::string& path, std::uint64_t rights) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kFileRights;
  const PathBeneathAttr rule{rights, fd};
  const long status = syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0);
  const int error = errno;
  close(fd);
  if (status != 0) throw std::runtime_error("landlock refused a rule for " + path + ": " + std::strerror(error));
}

// Returns the ABI version that was applied, 0 where the kernel has none. Needs no_new_privs. Threads that run already are
// not restricted. `executes`: what is readable may be executed as well; libraries are loaded without that.
inline int restrict_self(const std::vector<std::string>& readable, const std::vector<std::string>& writable,
                         bool executes) {
  const int abi = abi_version();
  if (abi == 0) return 0;
  RulesetAttr attributes{handled_rights(abi), 0, 0};
  if (abi >= 4) attributes.handled_access_net = 3;  // TCP bind and connect
  if (abi >= 6) attributes.scoped = 3;              // abstract sockets and signals outside this domain
  const std::size_t bytes = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const long ruleset = syscall(kCreateRuleset, &attributes, bytes, 0);
  if (ruleset < 0) throw std::runtime_error(std::string("landlock_create_ruleset failed: ") + std::strerror(errno));
  const std::uint64_t handled = executes ? attributes.handled_access_fs : attributes.handled_access_fs & ~kExecute;
  for (const auto& path : readable) allow(static_cast<int>(ruleset), path, (kExecute | kReadFile | kReadDir) & handled);
  for (const auto& path : writable) allow(static_cast<int>(ruleset), path, handled);
  const long status = syscall(kRestrictSelf, ruleset, 0);
  const int error = errno;
  close(static_cast<int>(ruleset));
  if (status != 0) throw std::runtime_error(std::string("landlock_restrict_self failed: ") + std::strerror(error));
  return abi;
}

}  // namespace landlock
}  // namespace confine
