// malloc, free, new and delete of device code: blocks of the device's heap, which is wiped between runs.
#pragma once
#include <cstddef>

#include "abi.hpp"

#define malloc emulator_malloc
#define free emulator_free

// Weak, because a program may be several units; hidden, because the runner has operators of its own.
#define EMULATOR_OPERATOR __attribute__((weak, visibility("hidden")))
EMULATOR_OPERATOR void* operator new(std::size_t bytes) { return emulator_malloc(bytes); }
EMULATOR_OPERATOR void* operator new[](std::size_t bytes) { return emulator_malloc(bytes); }
EMULATOR_OPERATOR void operator delete(void*) noexcept {}
EMULATOR_OPERATOR void operator delete[](void*) noexcept {}
EMULATOR_OPERATOR void operator delete(void*, std::size_t) noexcept {}
EMULATOR_OPERATOR void operator delete[](void*, std::size_t) noexcept {}
#undef EMULATOR_OPERATOR
