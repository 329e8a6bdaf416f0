// emulator-runner: the confined process that executes emulated programs.
#include <cstdio>

#include "confine.hpp"

int main() {
  std::fprintf(stderr, "emulator-runner is started by evaluator.devices.cpu, with inherited descriptors\n");
  return 2;
}
