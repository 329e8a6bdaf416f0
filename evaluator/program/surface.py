"""The CuPy subset, as names: what the screen lets through and what the tracer defines. Imports nothing."""

DTYPES = frozenset(
    {"bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}
)
CUPY = DTYPES | {
    "RawKernel",
    "RawModule",
    "copyto",
    "e",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "inf",
    "matmul",
    "nan",
    "ndarray",
    "ones",
    "ones_like",
    "pi",
    "zeros",
    "zeros_like",
}
# No factorial, comb or perm: one call of them can compute for ever inside C code.
MATH = frozenset(
    """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees dist e erf erfc exp exp2 expm1 fabs
    floor fmod fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 nan pi
    pow prod radians remainder sin sinh sqrt tan tanh tau trunc""".split()  # noqa: SIM905
)
LIB = frozenset({"attention", "conv", "gemm"})
ARRAY = frozenset({"T", "dtype", "fill", "itemsize", "nbytes", "ndim", "ravel", "reshape", "shape", "size"})
MODULE = frozenset({"get_function"})
KERNEL = frozenset({"max_dynamic_shared_size_bytes"})  # may be assigned too
DTYPE = frozenset({"name"})
BUILTINS = frozenset(
    """AssertionError abs all any bool divmod enumerate float int len list max min range reversed round sorted str sum
    tuple zip""".split()  # noqa: SIM905
)
# Names of CuPy's own parameters, where a program may pass them by name.
ARGUMENTS = frozenset(
    """args backend block code dst dtype fill_value grid name name_expressions options order out prototype shape
    shared_mem src""".split()  # noqa: SIM905
) | {"causal", "dilation", "groups", "output_padding", "padding", "stride", "transpose_a", "transpose_b", "transposed"}
IMPORTS = ("import cupy as cp", "import math", "from evaluator import lib")
