"""Judges CUDA programs, and calls those that it has found right.

    verdict = evaluator.check("my_program.py", "1_019")
    relu = evaluator.load("kernels/1_019/plain.py")  # on NumPy, CuPy and PyTorch arrays
    relu = evaluator.jax_call("kernels/1_019/plain.py")  # under jax.jit

Importing this imports neither JAX nor CuPy; the functions do, as far as they need them.
"""

TYPE_CHECKING = False  # of `typing`, which a tracing process would have to import
if TYPE_CHECKING:
    from evaluator.calling.checking import check
    from evaluator.calling.jax_function import jax_call
    from evaluator.calling.loaded import load

__all__ = ["check", "jax_call", "load"]


def __getattr__(name: str) -> object:
    if name == "check":
        from evaluator.calling.checking import check

        return check
    if name == "jax_call":
        from evaluator.calling.jax_function import jax_call

        return jax_call
    if name == "load":
        from evaluator.calling.loaded import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
