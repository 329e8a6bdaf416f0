// The shim: CUDA C++ device code becomes host C++. Force-included, precompiled, before every program.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "emulator/abi.hpp"
#include "emulator/atomics.hpp"
#include "emulator/barriers.hpp"
#include "emulator/bfloat16.hpp"
#include "emulator/builtins.hpp"
#include "emulator/conversions.hpp"
#include "emulator/cooperative_groups.hpp"
#include "emulator/export.hpp"
#include "emulator/half.hpp"
#include "emulator/integer.hpp"
#include "emulator/math.hpp"
#include "emulator/memory.hpp"
#include "emulator/vector_types.hpp"
#include "emulator/warp.hpp"
#include "emulator/wmma.hpp"
