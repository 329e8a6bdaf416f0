// Part of the shim's cooperative groups.
#pragma once
#include "../cooperative_groups.h"
