// Conversions between number types with an explicit rounding, and reinterpretations of bits. Conversions to integers
// saturate and turn NaN into 0, as the device's do; the host's C cast does neither.
#pragma once
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace emulator {

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class Integer, class Float>
inline Integer saturate_to(Float rounded) {
  if (rounded != rounded) return 0;
  constexpr Float limit = static_cast<Float>(1ull << (std::numeric_limits<Integer>::digits - 1)) * 2;
  if (rounded >= limit) return std::numeric_limits<Integer>::max();
  if (rounded < static_cast<Float>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(rounded);
}

// The compiler must not move an operation across a change of the rounding mode, nor compute it beforehand.
template <class T>
inline void hide_from_optimizer(T& value) {
  __asm__ volatile("" : "+m"(value));
}

// function(arguments...) under another rounding mode than the nearest.
template <class Function, class... Arguments>
inline auto with_rounding(int mode, Function function, Arguments... arguments) {
  const int before = std::fegetround();
  std::fesetround(mode);
  (hide_from_optimizer(arguments), ...);
  auto result = function(arguments...);
  hide_from_optimizer(result);
  std::fesetround(before);
  return result;
}

}  // namespace emulator

#define EMULATOR_TO_INTEGER(prefix, from, to, type)                                                              \
  inline type prefix##2##to##_rn(from x) { return emulator::saturate_to<type>(std::nearbyint(x)); }              \
  inline type prefix##2##to##_rz(from x) { return emulator::saturate_to<type>(std::trunc(x)); }                  \
  inline type prefix##2##to##_ru(from x) { return emulator::saturate_to<type>(std::ceil(x)); }                   \
  inline type prefix##2##to##_rd(from x) { return emulator::saturate_to<type>(std::floor(x)); }
EMULATOR_TO_INTEGER(__float, float, int, int)
EMULATOR_TO_INTEGER(__float, float, uint, unsigned)
EMULATOR_TO_INTEGER(__float, float, ll, long long)
EMULATOR_TO_INTEGER(__float, float, ull, unsigned long long)
EMULATOR_TO_INTEGER(__double, double, int, int)
EMULATOR_TO_INTEGER(__double, double, uint, unsigned)
EMULATOR_TO_INTEGER(__double, double, ll, long long)
EMULATOR_TO_INTEGER(__double, double, ull, unsigned long long)
#undef EMULATOR_TO_INTEGER

#define EMULATOR_ROUNDED(name, from, to)                                                                 \
  inline to name##_rn(from x) { return static_cast<to>(x); }                                             \
  inline to name##_rz(from x) { return emulator::with_rounding(FE_TOWARDZERO, name##_rn, x); }           \
  inline to name##_ru(from x) { return emulator::with_rounding(FE_UPWARD, name##_rn, x); }               \
  inline to name##_rd(from x) { return emulator::with_rounding(FE_DOWNWARD, name##_rn, x); }
EMULATOR_ROUNDED(__int2float, int, float)
EMULATOR_ROUNDED(__uint2float, unsigned, float)
EMULATOR_ROUNDED(__ll2float, long long, float)
EMULATOR_ROUNDED(__ull2float, unsigned long long, float)
EMULATOR_ROUNDED(__ll2double, long long, double)
EMULATOR_ROUNDED(__ull2double, unsigned long long, double)
EMULATOR_ROUNDED(__double2float, double, float)
#undef EMULATOR_ROUNDED
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

inline int __float_as_int(float x) { return emulator::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return emulator::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return emulator::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  const auto high_bits = static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32;
  return __longlong_as_double(static_cast<long long>(high_bits | static_cast<unsigned>(low)));
}
