// Cooperative groups of a block and of the lanes of a warp.
#pragma once
namespace cooperative_groups = emulator_cooperative_groups;
