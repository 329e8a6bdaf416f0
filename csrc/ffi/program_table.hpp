// The programs that XLA may call, by key. A key is a digest of what the program does, never a number: an executable
// that XLA has kept on disk names the same program in the next process, or none.
#pragma once
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace calling {

// Entries stay for the life of the process: nothing tells when the last executable that names one is gone.
template <class Program>
class ProgramTable {
 public:
  // The process's own. Never destroyed, since threads of XLA may outlive the exit handlers.
  static ProgramTable& instance() {
    static auto* table = new ProgramTable;
    return *table;
  }

  // Keeps the first program of a key.
  void add(const std::string& key, std::shared_ptr<Program> program) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    programs_.emplace(key, std::move(program));
  }

  // Null where there is none.
  std::shared_ptr<Program> find(std::string_view key) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = programs_.find(std::string(key));
    return found == programs_.end() ? nullptr : found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Program>> programs_;
};

}  // namespace calling
