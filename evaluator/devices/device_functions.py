"""Which functions outside its own text a program may call: the runtime's, and those that device code has in CUDA."""

import re

_MATHEMATICAL = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf"),
        *("erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "frexp"),
        *("hypot", "ilogb", "j0", "j1", "jn", "ldexp", "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2"),
        *("logb", "lrint", "lround", "modf", "nan", "nearbyint", "nextafter", "pow", "remainder", "remquo", "rint"),
        *("round", "roundeven", "scalbln", "scalbn", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
        *("y0", "y1", "yn"),
    }
)
_OTHERS = frozenset(
    {
        *("memchr", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strcpy", "strlen", "strncmp"),
        *("abs", "labs", "llabs", "clock", "printf", "puts", "putchar", "vprintf"),
        *("abort", "__assert_fail", "fegetround", "fesetround"),
        *("__cxa_guard_acquire", "__cxa_guard_release", "__cxa_pure_virtual", "__tls_get_addr"),
    }
)
_PATTERNS = re.compile(
    r"emulator_\w+|__ubsan_handle_\w+_abort"
    r"|_ZSt\d+__throw_\w+|_ZSt21__glibcxx_assert_failPKciS0_S0_"  # the standard library's own checks
)


def foreign(imports: frozenset[str]) -> list[str]:
    """The imported names that device code cannot use, sorted."""
    return sorted(name for name in imports if not _is_device_function(name))


def _is_device_function(name: str) -> bool:
    if name in _OTHERS or _PATTERNS.fullmatch(name):
        return True
    return name in _MATHEMATICAL or (name[-1] in "fl" and name[:-1] in _MATHEMATICAL)
