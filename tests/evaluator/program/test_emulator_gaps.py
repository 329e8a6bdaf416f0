"""What the emulator cannot run is found in the text, with its line."""

import pytest

from evaluator.program.emulator_gaps import gaps

GAPS = {
    'asm volatile("mov");': "inline PTX (asm)",
    "#define A asm": "inline PTX (asm)",
    "k<<<1, 2>>>(x);": "a launch from device code (<<<>>>)",
    "cg::this_grid().sync();": "synchronisation of a whole grid",
    "__cluster_dims__(2) void k();": "thread block clusters",
    "cde::cp_async_bulk_tensor(x);": "the tensor memory accelerator (TMA)",
    "cudaGridDependencySynchronize();": "programmatic dependent launch",
    "cudaTextureObject_t t;": "textures and surfaces",
    "__nv_fp8_e4m3 x;": "8-bit and smaller floating point",
    "#include <cub/cub.cuh>": "the header 'cub/cub.cuh'",
    "#include <cuda/barrier>": "the header 'cuda/barrier'",
    "#include <cuda_fp8.h>": "the header 'cuda_fp8.h'",
    "#include <cuda_awbarrier.h>": "the header 'cuda_awbarrier.h'",
}


@pytest.mark.parametrize(("source", "what"), GAPS.items())
def test_what_the_emulator_cannot_run_is_named_with_its_line(source, what):
    found = gaps("// asm <<<\nint cub;\n" + source)
    assert [(gap.what, gap.line) for gap in found] == [(what, 3)]


@pytest.mark.parametrize(
    "source", ['/* asm */ const char* s = "<<<";', "#include <cuda_fp16.h>", "void k(const __grid_constant__ int n);"]
)
def test_what_it_can_run_is_no_gap(source):
    assert gaps(source) == []
