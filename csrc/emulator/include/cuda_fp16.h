// float16: opens the types and functions of the shim.
#pragma once
using namespace emulator_fp16;
