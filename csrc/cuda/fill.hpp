#pragma once
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "driver.hpp"

namespace cuda {

// Queues: the bytes of `pattern` (1, 2, 4 or 8 of them) `count` times from `address`.
inline void fill(const Driver& driver, Handle stream, DevicePointer address, const std::string& pattern,
                 std::size_t count) {
  if (count == 0) return;
  std::uint32_t words[2] = {};
  std::memcpy(words, pattern.data(), std::min<std::size_t>(pattern.size(), sizeof words));
  switch (pattern.size()) {
    case 1:
      return driver.check(driver.set_d8(address, static_cast<unsigned char>(words[0]), count, stream), "cuMemsetD8");
    case 2:
      return driver.check(driver.set_d16(address, static_cast<unsigned short>(words[0]), count, stream), "cuMemsetD16");
    case 4: return driver.check(driver.set_d32(address, words[0], count, stream), "cuMemsetD32");
    case 8:  // low and high halves as two columns of a table that is two words wide
      driver.check(driver.set_2d_d32(address, 8, words[0], 1, count, stream), "cuMemsetD2D32");
      return driver.check(driver.set_2d_d32(address + 4, 8, words[1], 1, count, stream), "cuMemsetD2D32");
    default: throw std::invalid_argument("a pattern has 1, 2, 4 or 8 bytes, not " + std::to_string(pattern.size()));
  }
}

}  // namespace cuda
