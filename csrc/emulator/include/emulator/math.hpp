// Mathematical functions that CUDA has and the host's library lacks, and the fast-math intrinsics. The intrinsics are
// computed at full precision: their error bounds on a device allow that.
#pragma once
#include <math.h>

#include <cmath>
#include <type_traits>

#include "conversions.hpp"

// glibc keeps these names for itself; its headers are read before this line.
#define __expf emulator_expf
#define __exp10f emulator_exp10f
#define __logf emulator_logf
#define __log2f emulator_log2f
#define __log10f emulator_log10f
#define __sinf emulator_sinf
#define __cosf emulator_cosf
#define __tanf emulator_tanf
#define __tanhf emulator_tanhf
#define __powf emulator_powf
#define __sincosf emulator_sincosf

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }  // NaN gives 0
inline float saturate(float x) { return __saturatef(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
inline double rhypot(double x, double y) { return 1.0 / std::hypot(x, y); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
inline float norm4df(float a, float b, float c, float d) { return sqrtf(a * a + b * b + c * c + d * d); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
inline double norm3d(double a, double b, double c) { return std::sqrt(a * a + b * b + c * c); }
inline double norm4d(double a, double b, double c, double d) { return std::sqrt(a * a + b * b + c * c + d * d); }

inline void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
inline float exp10(float x) { return exp10f(x); }

namespace emulator {

constexpr double kPi = 3.14159265358979323846;

// sin and cos of pi * x; the argument is reduced before it is multiplied, so whole and half numbers come out exactly.
template <class T>
inline T sine_of_pi(T x) {
  const T r = std::remainder(x, T(2));
  if (r == T(0) || std::fabs(r) == T(1)) return std::copysign(T(0), x);
  return static_cast<T>(std::sin(kPi * static_cast<double>(r)));
}
template <class T>
inline T cosine_of_pi(T x) {
  const T r = std::fabs(std::remainder(x, T(2)));
  if (r == T(0.5)) return T(0);
  return static_cast<T>(std::cos(kPi * static_cast<double>(r)));
}

// Giles' approximation of the inverse error function, then two Newton steps to full double precision.
inline double inverse_erf(double x) {
  if (x <= -1.0 || x >= 1.0) return std::fabs(x) == 1.0 ? std::copysign(HUGE_VAL, x) : std::nan("");
  double w = -std::log((1.0 - x) * (1.0 + x)), p;
  if (w < 5.0) {
    w -= 2.5;
    p = 2.81022636e-08;
    for (const double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                           -0.00417768164, 0.246640727, 1.50140941})
      p = c + p * w;
  } else {
    w = std::sqrt(w) - 3.0;
    p = -0.000200214257;
    for (const double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                           0.00943887047, 1.00167406, 2.83297682})
      p = c + p * w;
  }
  double y = p * x;
  for (int i = 0; i < 2; ++i) y -= (std::erf(y) - x) / (2.0 / std::sqrt(kPi) * std::exp(-y * y));
  return y;
}
// Near x = 0, 1 - x rounds to 1, so the complement is found from erfc itself.
inline double inverse_erfc(double x) {
  if (x > 0.1) return inverse_erf(1.0 - x);
  if (x <= 0.0) return x == 0.0 ? HUGE_VAL : std::nan("");
  double y = std::sqrt(-std::log(x));
  for (int i = 0; i < 60; ++i) {
    const double step = (std::erfc(y) - x) / (2.0 / std::sqrt(kPi) * std::exp(-y * y));
    y += step;
    if (std::fabs(step) < 1e-15 * y) break;
  }
  return y;
}
// exp(x^2) erfc(x); for large x the asymptotic series, since the factors over- and underflow.
inline double scaled_erfc(double x) {
  if (x < 25.0) return std::exp(x * x) * std::erfc(x);
  const double t = 1.0 / (2.0 * x * x);
  return (1.0 - t * (1.0 - 3.0 * t * (1.0 - 5.0 * t))) / (x * std::sqrt(kPi));
}

}  // namespace emulator

inline float sinpif(float x) { return emulator::sine_of_pi(x); }
inline float cospif(float x) { return emulator::cosine_of_pi(x); }
inline double sinpi(double x) { return emulator::sine_of_pi(x); }
inline double cospi(double x) { return emulator::cosine_of_pi(x); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x), *cosine = cospif(x); }
inline void sincospi(double x, double* sine, double* cosine) { *sine = sinpi(x), *cosine = cospi(x); }
inline double erfinv(double x) { return emulator::inverse_erf(x); }
inline float erfinvf(float x) { return static_cast<float>(emulator::inverse_erf(x)); }
inline double erfcinv(double x) { return emulator::inverse_erfc(x); }
inline float erfcinvf(float x) { return static_cast<float>(emulator::inverse_erfc(x)); }
inline double erfcx(double x) { return emulator::scaled_erfc(x); }
inline float erfcxf(float x) { return static_cast<float>(emulator::scaled_erfc(x)); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
inline double normcdfinv(double x) { return -std::sqrt(2.0) * emulator::inverse_erfc(2.0 * x); }
inline float normcdfinvf(float x) { return static_cast<float>(normcdfinv(x)); }

#define EMULATOR_UNARY(name, type, expression)                                                                \
  inline type name##_rn(type x) { return expression; }                                                        \
  inline type name##_rz(type x) { return emulator::with_rounding(FE_TOWARDZERO, name##_rn, x); }              \
  inline type name##_ru(type x) { return emulator::with_rounding(FE_UPWARD, name##_rn, x); }                  \
  inline type name##_rd(type x) { return emulator::with_rounding(FE_DOWNWARD, name##_rn, x); }
#define EMULATOR_BINARY(name, type, expression)                                                               \
  inline type name##_rn(type x, type y) { return expression; }                                                \
  inline type name##_rz(type x, type y) { return emulator::with_rounding(FE_TOWARDZERO, name##_rn, x, y); }   \
  inline type name##_ru(type x, type y) { return emulator::with_rounding(FE_UPWARD, name##_rn, x, y); }       \
  inline type name##_rd(type x, type y) { return emulator::with_rounding(FE_DOWNWARD, name##_rn, x, y); }
#define EMULATOR_TERNARY(name, type, expression)                                                                       \
  inline type name##_rn(type x, type y, type z) { return expression; }                                                 \
  inline type name##_rz(type x, type y, type z) { return emulator::with_rounding(FE_TOWARDZERO, name##_rn, x, y, z); } \
  inline type name##_ru(type x, type y, type z) { return emulator::with_rounding(FE_UPWARD, name##_rn, x, y, z); }     \
  inline type name##_rd(type x, type y, type z) { return emulator::with_rounding(FE_DOWNWARD, name##_rn, x, y, z); }

EMULATOR_BINARY(__fadd, float, x + y)
EMULATOR_BINARY(__fsub, float, x - y)
EMULATOR_BINARY(__fmul, float, x* y)
EMULATOR_BINARY(__fdiv, float, x / y)
EMULATOR_TERNARY(__fmaf, float, fmaf(x, y, z))
EMULATOR_UNARY(__frcp, float, 1.0f / x)
EMULATOR_UNARY(__fsqrt, float, sqrtf(x))
EMULATOR_BINARY(__dadd, double, x + y)
EMULATOR_BINARY(__dsub, double, x - y)
EMULATOR_BINARY(__dmul, double, x* y)
EMULATOR_BINARY(__ddiv, double, x / y)
EMULATOR_TERNARY(__fma, double, std::fma(x, y, z))
EMULATOR_UNARY(__drcp, double, 1.0 / x)
EMULATOR_UNARY(__dsqrt, double, std::sqrt(x))
#undef EMULATOR_UNARY
#undef EMULATOR_BINARY
#undef EMULATOR_TERNARY
