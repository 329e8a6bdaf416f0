"""The folds that reductions and norms are made of, as CUDA text for `fold`."""

import numpy as np

from evaluator.nn.cupy_nn.fold import Fold

_NUMBER = """
typedef float Acc;
typedef float Out;
__device__ __forceinline__ Acc shift(Acc a, int lanes) { return __shfl_down_sync(0xffffffffu, a, lanes); }
"""


def _number(identity: str, mapped: str, combined: str, finished: str = "a") -> Fold:
    """A fold whose accumulator is one float."""
    return Fold(f"""{_NUMBER}
__device__ __forceinline__ Acc identity() {{ return {identity}; }}
__device__ __forceinline__ Acc map(float x, long long, float p) {{ return {mapped}; }}
__device__ __forceinline__ Acc combine(Acc a, Acc b) {{ return {combined}; }}
__device__ __forceinline__ Out finish(Acc a, long long n, float p) {{ return {finished}; }}
""")


_INFINITY = "__int_as_float(0x7f800000)"

SUM = _number("0.0f", "x", "a + b")
MEAN = _number("0.0f", "x", "a + b", "a / (float)n")
PROD = _number("1.0f", "x", "a * b")
MAX = _number(f"-{_INFINITY}", "x", "(a > b || a != a) ? a : b")
MIN = _number(_INFINITY, "x", "(a < b || a != a) ? a : b")
NORM_1 = _number("0.0f", "fabsf(x)", "a + b")
NORM_2 = _number("0.0f", "x * x", "a + b", "sqrtf(a)")
NORM_INFINITY = _number("0.0f", "fabsf(x)", "(a > b || a != a) ? a : b")
NORM_P = _number("0.0f", "powf(fabsf(x), p)", "a + b", "powf(a, 1.0f / p)")
MEAN_SQUARE = _number("0.0f", "x * x", "a + b", "a / (float)n")


def _index(signed: str) -> Fold:
    """Index of the first largest `signed` element; the first NaN counts as larger than any number.

    Floats become integers of the same order, both zeros alike and NaN on top, so that one comparison settles a pair.
    """
    text = """
struct Acc { int key, i; };
typedef long long Out;
__device__ __forceinline__ Acc shift(Acc a, int lanes) {
  return {__shfl_down_sync(0xffffffffu, a.key, lanes), __shfl_down_sync(0xffffffffu, a.i, lanes)};
}
__device__ __forceinline__ Acc identity() { return {(int)0x80000000, 0x7fffffff}; }
__device__ __forceinline__ Acc map(float x, long long i, float) {
  int bits = __float_as_int(SIGNED + 0.0f);
  return {x != x ? 0x7fffffff : bits ^ ((bits >> 31) & 0x7fffffff), (int)i};
}
__device__ __forceinline__ Acc combine(Acc a, Acc b) {
  return b.key > a.key || (b.key == a.key && b.i < a.i) ? b : a;
}
__device__ __forceinline__ Out finish(Acc a, long long, float) { return a.i; }
"""
    return Fold(text.replace("SIGNED", signed), acc_floats=2, out=np.int64)


ARGMAX = _index("x")
ARGMIN = _index("-x")

_MOMENTS = """
struct Acc { float n, mean, m2; };
struct Pair { float first, second; };
__device__ __forceinline__ Acc shift(Acc a, int lanes) {
  return {__shfl_down_sync(0xffffffffu, a.n, lanes), __shfl_down_sync(0xffffffffu, a.mean, lanes),
          __shfl_down_sync(0xffffffffu, a.m2, lanes)};
}
__device__ __forceinline__ Acc identity() { return {0.0f, 0.0f, 0.0f}; }
__device__ __forceinline__ Acc map(float x, long long, float) { return {1.0f, x, 0.0f}; }
// Chan, Golub and LeVeque: no difference of large sums, whatever the mean
__device__ __forceinline__ Acc combine(Acc a, Acc b) {
  float n = a.n + b.n, weight = n > 0.0f ? __fdividef(b.n, n) : 0.0f, delta = b.mean - a.mean;
  return {n, a.mean + delta * weight, a.m2 + b.m2 + delta * delta * a.n * weight};
}
"""

# Variance with p taken from the count, and its root.
VAR = Fold(
    f"{_MOMENTS}typedef float Out;\n"
    "__device__ __forceinline__ Out finish(Acc a, long long n, float p) { return a.m2 / ((float)n - p); }\n",
    acc_floats=3,
)
STD = Fold(
    f"{_MOMENTS}typedef float Out;\n"
    "__device__ __forceinline__ Out finish(Acc a, long long n, float p) { return sqrtf(a.m2 / ((float)n - p)); }\n",
    acc_floats=3,
)
# Mean, and one over the root of the biased variance plus p.
STANDARD = Fold(
    f"{_MOMENTS}typedef Pair Out;\n__device__ __forceinline__ Out finish(Acc a, long long n, float p) "
    "{ return {a.mean, 1.0f / sqrtf(a.m2 / (float)n + p)}; }\n",
    acc_floats=3,
    out_numbers=2,
)

_EXPONENTIALS = """
struct Acc { float top, sum; };  // the largest element, and the sum of exp(x - top)
struct Pair { float first, second; };
__device__ __forceinline__ Acc shift(Acc a, int lanes) {
  return {__shfl_down_sync(0xffffffffu, a.top, lanes), __shfl_down_sync(0xffffffffu, a.sum, lanes)};
}
__device__ __forceinline__ Acc identity() { return {-__int_as_float(0x7f800000), 0.0f}; }
__device__ __forceinline__ Acc map(float x, long long, float) { return {x, 1.0f}; }
__device__ __forceinline__ Acc combine(Acc a, Acc b) {
  if (b.top > a.top || b.top != b.top) { Acc c = a; a = b; b = c; }  // one exponential a pair, never of inf - inf
  return {a.top, b.top == a.top ? a.sum + b.sum : a.sum + b.sum * expf(b.top - a.top)};
}
"""

# log(sum(exp(x)))
LOGSUMEXP = Fold(
    f"{_EXPONENTIALS}typedef float Out;\n"
    "__device__ __forceinline__ Out finish(Acc a, long long, float) { return a.top + logf(a.sum); }\n",
    acc_floats=2,
)
# The largest element, and the sum of exp(x - largest).
EXPONENTIALS = Fold(
    f"{_EXPONENTIALS}typedef Pair Out;\n"
    "__device__ __forceinline__ Out finish(Acc a, long long, float) { return {a.top, a.sum}; }\n",
    acc_floats=2,
    out_numbers=2,
)
# The largest element, and the logarithm of the sum of exp(x - largest): their sum would lose digits.
LOG_EXPONENTIALS = Fold(
    f"{_EXPONENTIALS}typedef Pair Out;\n"
    "__device__ __forceinline__ Out finish(Acc a, long long, float) { return {a.top, logf(a.sum)}; }\n",
    acc_floats=2,
    out_numbers=2,
)
