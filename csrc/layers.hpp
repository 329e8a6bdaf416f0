// The three layers of the confinement, each of which can be left out: on a system that dislikes one, and in the tests
// that show what each holds by itself.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <string>

namespace confine {

struct Layers {
  bool rlimits = true, landlock = true, seccomp = true;

  static Layers none() { return {false, false, false}; }

  void add(const std::string& name) {
    if (name == "rlimits") {
      rlimits = true;
    } else if (name == "landlock") {
      landlock = true;
    } else if (name == "seccomp") {
      seccomp = true;
    } else {
      throw std::invalid_argument("unknown layer '" + name + "': expected rlimits, landlock or seccomp");
    }
  }

  // From names with commas between them; an empty text is none of them.
  static Layers parse(const std::string& names) {
    Layers layers = none();
    for (std::size_t start = 0; start < names.size();) {
      const std::size_t comma = std::min(names.find(',', start), names.size());
      layers.add(names.substr(start, comma - start));
      start = comma + 1;
    }
    return layers;
  }
};

}  // namespace confine
