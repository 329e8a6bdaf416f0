// float16 and bfloat16 as bits: conversions from and to float. The runtime's matrix product uses them as well.
#pragma once
#include <cmath>
#include <cstdint>

#include "conversions.hpp"

namespace emulator {

#if defined(__F16C__)
typedef float Float4 __attribute__((vector_size(16)));
typedef short Short8 __attribute__((vector_size(16)));
inline std::uint16_t half_from_float(float f) {
  const Float4 v = {f, 0, 0, 0};
  return static_cast<std::uint16_t>(((Short8)__builtin_ia32_vcvtps2ph(v, 0))[0]);
}
inline float half_to_float(std::uint16_t bits) {
  const Short8 v = {static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0};
  return __builtin_ia32_vcvtph2ps(v)[0];
}
#elif defined(__aarch64__)
inline std::uint16_t half_from_float(float f) { return bit_cast<std::uint16_t>(static_cast<__fp16>(f)); }
inline float half_to_float(std::uint16_t bits) { return static_cast<float>(bit_cast<__fp16>(bits)); }
#else
// Round to nearest even in integers; subnormals and overflow included.
inline std::uint16_t half_from_float(float f) {
  const auto bits = bit_cast<std::uint32_t>(f);
  const std::uint16_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {  // subnormal: one unit is 2^-24, and adding 0.5f rounds there
    const float shifted = bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(bit_cast<std::uint32_t>(shifted) - 0x3f000000);
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000;
  return sign | static_cast<std::uint16_t>(rounded >> 13);
}
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) return bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  return bit_cast<float>(sign | bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
}
#endif

// Rounds to odd: what is lost leaves a mark in the last bit, so that rounding once more gives what rounding once would.
inline float float_to_odd(double d) {
  float f = static_cast<float>(d);
  if (d != d || static_cast<double>(f) == d) return f;
  auto bits = bit_cast<std::uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(d)) --bits;  // towards zero
  return bit_cast<float>(bits | 1u);
}

inline std::uint16_t bfloat16_from_float(float f) {
  const auto bits = bit_cast<std::uint32_t>(f);
  if (f != f) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to nearest, ties to even
}
inline float bfloat16_to_float(std::uint16_t bits) { return bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace emulator
