"""Library steps for programs: `from evaluator import lib`.

Traced, each call becomes a step of the plan. Under real CuPy the same file runs through these functions. The steps are
named here so that a program that asks for one is told what to do instead; none is available in this version.
"""

from typing import NoReturn


def gemm(*arguments: object, **options: object) -> NoReturn:
    """Matrix product with an epilogue (cuBLASLt). Raises NotImplementedError."""
    raise NotImplementedError(_message("gemm"))


def conv(*arguments: object, **options: object) -> NoReturn:
    """Convolution (cuDNN). Raises NotImplementedError."""
    raise NotImplementedError(_message("conv"))


def attention(*arguments: object, **options: object) -> NoReturn:
    """Scaled dot-product attention (cuDNN). Raises NotImplementedError."""
    raise NotImplementedError(_message("attention"))


def _message(name: str) -> str:
    return f"lib.{name} is not available in this version; write a kernel, or use cp.matmul for a product"
