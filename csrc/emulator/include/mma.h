// Tensor cores through the wmma interface. As in CUDA, float16 comes with it.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
namespace nvcuda = emulator_nvcuda;
