// float16 as CUDA's headers spell it: __half and __half2. Kept in a namespace of its own that cuda_fp16.h opens, so a
// program that forgets the include fails here as it would under NVRTC. Arithmetic rounds once, from float.
#pragma once
#include <cmath>

#include "atomics.hpp"
#include "conversions.hpp"
#include "small_floats.hpp"
#include "vector_types.hpp"
#include "warp.hpp"

namespace emulator_fp16 {

struct __half_raw {
  unsigned short x;
};

struct alignas(2) __half {
  unsigned short bits;

  __half() = default;
  __half(const __half_raw& raw) : bits(raw.x) {}
  __half(float f) : bits(emulator::half_from_float(f)) {}
  __half(double d) : bits(emulator::half_from_float(emulator::float_to_odd(d))) {}
  __half(int i) : __half(static_cast<float>(i)) {}
  __half(unsigned i) : __half(static_cast<float>(i)) {}
  __half(long long i) : __half(static_cast<float>(i)) {}
  __half(unsigned long long i) : __half(static_cast<float>(i)) {}
  __half(short i) : __half(static_cast<float>(i)) {}
  __half(unsigned short i) : __half(static_cast<float>(i)) {}

  operator float() const { return emulator::half_to_float(bits); }
  operator __half_raw() const { return {bits}; }
};

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  constexpr __half2(const __half& low, const __half& high) : x(low), y(high) {}
};

using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;

#define EMULATOR_NUMBER __half
#define EMULATOR_NUMBER2 __half2
#define EMULATOR_FROM_FLOAT(f) __half(static_cast<float>(f))
#include "small_float_operations.inc"

inline __half __float2half(float f) { return __half(f); }
inline __half __float2half_rn(float f) { return __half(f); }
inline __half __double2half(double d) { return __half(d); }
inline float __half2float(__half h) { return h; }
inline __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
inline __half2 __floats2half2_rn(float low, float high) { return {__half(low), __half(high)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {static_cast<float>(v.x), static_cast<float>(v.y)}; }
inline __half2 __half2half2(__half h) { return {h, h}; }
inline __half2 __halves2half2(__half low, __half high) { return {low, high}; }
inline __half2 make_half2(__half low, __half high) { return {low, high}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }
inline __half __short_as_half(short bits) { return __ushort_as_half(static_cast<unsigned short>(bits)); }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline short __half_as_short(__half h) { return static_cast<short>(h.bits); }
inline __half __int2half_rn(int i) { return __half(i); }
inline __half __uint2half_rn(unsigned i) { return __half(i); }
inline __half __short2half_rn(short i) { return __half(i); }
inline int __half2int_rn(__half h) { return __float2int_rn(h); }
inline int __half2int_rz(__half h) { return __float2int_rz(h); }
inline int __half2int_rd(__half h) { return __float2int_rd(h); }
inline int __half2int_ru(__half h) { return __float2int_ru(h); }
inline unsigned __half2uint_rn(__half h) { return __float2uint_rn(h); }
inline unsigned __half2uint_rz(__half h) { return __float2uint_rz(h); }

}  // namespace emulator_fp16
