// bfloat16 as CUDA's headers spell it: __nv_bfloat16 and __nv_bfloat162, opened by cuda_bf16.h.
#pragma once
#include "half.hpp"

namespace emulator_bf16 {

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct alignas(2) __nv_bfloat16 {
  unsigned short bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits(raw.x) {}
  __nv_bfloat16(float f) : bits(emulator::bfloat16_from_float(f)) {}
  __nv_bfloat16(double d) : bits(emulator::bfloat16_from_float(emulator::float_to_odd(d))) {}
  __nv_bfloat16(int i) : __nv_bfloat16(static_cast<float>(i)) {}
  __nv_bfloat16(unsigned i) : __nv_bfloat16(static_cast<float>(i)) {}
  __nv_bfloat16(long long i) : __nv_bfloat16(static_cast<float>(i)) {}
  __nv_bfloat16(unsigned long long i) : __nv_bfloat16(static_cast<float>(i)) {}
  __nv_bfloat16(short i) : __nv_bfloat16(static_cast<float>(i)) {}
  __nv_bfloat16(unsigned short i) : __nv_bfloat16(static_cast<float>(i)) {}

  operator float() const { return emulator::bfloat16_to_float(bits); }
  operator __nv_bfloat16_raw() const { return {bits}; }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  constexpr __nv_bfloat162(const __nv_bfloat16& low, const __nv_bfloat16& high) : x(low), y(high) {}
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define EMULATOR_NUMBER __nv_bfloat16
#define EMULATOR_NUMBER2 __nv_bfloat162
#define EMULATOR_FROM_FLOAT(f) __nv_bfloat16(static_cast<float>(f))
#include "small_float_operations.inc"

inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
inline __nv_bfloat16 __double2bfloat16(double d) { return d; }
inline float __bfloat162float(__nv_bfloat16 b) { return b; }
inline __nv_bfloat162 __float2bfloat162_rn(float f) { return {f, f}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) { return {low, high}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {static_cast<float>(v.x), static_cast<float>(v.y)}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 b) { return {b, b}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline float __low2float(__nv_bfloat162 v) { return v.x; }
inline float __high2float(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
inline short __bfloat16_as_short(__nv_bfloat16 b) { return static_cast<short>(b.bits); }
inline __nv_bfloat16 __int2bfloat16_rn(int i) { return i; }
inline int __bfloat162int_rn(__nv_bfloat16 b) { return __float2int_rn(b); }
inline int __bfloat162int_rz(__nv_bfloat16 b) { return __float2int_rz(b); }

}  // namespace emulator_bf16
