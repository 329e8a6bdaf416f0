// Built-in vector types with CUDA's alignments, and their make_ functions.
#pragma once
#include "abi.hpp"

using uint = unsigned int;
using uchar = unsigned char;
using ushort = unsigned short;
using ulong = unsigned long;

#define EMULATOR_VECTOR_1_TO_4(type, name, align2, align4)                                                  \
  struct name##1 {                                                                                          \
    type x;                                                                                                 \
  };                                                                                                        \
  struct alignas(align2) name##2 {                                                                          \
    type x, y;                                                                                              \
  };                                                                                                        \
  struct alignas(align4) name##4 {                                                                          \
    type x, y, z, w;                                                                                        \
  };                                                                                                        \
  constexpr name##1 make_##name##1(type x) { return {x}; }                                                  \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }                                       \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                            \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

#define EMULATOR_VECTOR(type, name, align2, align4) \
  struct name##3 {                                  \
    type x, y, z;                                   \
  };                                                \
  EMULATOR_VECTOR_1_TO_4(type, name, align2, align4)

EMULATOR_VECTOR(signed char, char, 2, 4)
EMULATOR_VECTOR(unsigned char, uchar, 2, 4)
EMULATOR_VECTOR(short, short, 4, 8)
EMULATOR_VECTOR(unsigned short, ushort, 4, 8)
EMULATOR_VECTOR(int, int, 8, 16)
EMULATOR_VECTOR_1_TO_4(unsigned, uint, 8, 16)  // uint3 is part of the ABI
EMULATOR_VECTOR(long, long, 16, 16)
EMULATOR_VECTOR(unsigned long, ulong, 16, 16)
EMULATOR_VECTOR(long long, longlong, 16, 16)
EMULATOR_VECTOR(unsigned long long, ulonglong, 16, 16)
EMULATOR_VECTOR(float, float, 8, 16)
EMULATOR_VECTOR(double, double, 16, 16)

#undef EMULATOR_VECTOR
#undef EMULATOR_VECTOR_1_TO_4
