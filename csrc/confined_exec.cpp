// confined-exec: confines itself and becomes another program. The evaluator starts host compilers through it, since a
// Python process with threads cannot safely run code between fork and exec.
//
//   confined-exec --profile=compiler --read=DIR... --write=DIR... --limit=cpu_s=30... [--layers=rlimits,landlock] --
//     program arguments...
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "confine.hpp"

namespace {

constexpr int kWrongUse = 125, kCannotStart = 126;

confine::Request parse(int argc, char** argv, int* rest) {
  confine::Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&word](const char* flag) { return word.substr(std::strlen(flag)); };
    if (word == "--") {
      *rest = i + 1;
      return request;
    }
    if (word.rfind("--profile=", 0) == 0) {
      request.profile = value("--profile=");
    } else if (word.rfind("--read=", 0) == 0) {
      request.readable.push_back(value("--read="));
    } else if (word.rfind("--write=", 0) == 0) {
      request.writable.push_back(value("--write="));
    } else if (word.rfind("--layers=", 0) == 0) {
      request.layers = confine::Layers::parse(value("--layers="));
    } else if (word.rfind("--limit=", 0) == 0) {
      const std::string pair = value("--limit=");
      const auto equals = pair.find('=');
      if (equals == std::string::npos) throw std::invalid_argument("expected --limit=name=number, got " + word);
      request.limits[pair.substr(0, equals)] = std::stoll(pair.substr(equals + 1));
    } else {
      throw std::invalid_argument("unknown argument " + word);
    }
  }
  throw std::invalid_argument("expected -- and a program to run");
}

}  // namespace

int main(int argc, char** argv) {
  int rest = argc;
  try {
    const confine::Request request = parse(argc, argv, &rest);
    if (rest >= argc) throw std::invalid_argument("no program after --");
    confine::apply(request);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "confined-exec: %s\n", error.what());
    return kWrongUse;
  }
  execv(argv[rest], argv + rest);
  std::fprintf(stderr, "confined-exec: cannot run %s: %s\n", argv[rest], std::strerror(errno));
  return kCannotStart;
}
