"""Mathematical functions and intrinsics against Python's and NumPy's own."""

import math
import statistics

import numpy as np
import pytest

X = np.concatenate([np.linspace(0.01, 0.99, 50), np.linspace(1.0, 30.0, 14)])
POSITIVE = {
    "rsqrtf(x)": 1 / np.sqrt(X),
    "rsqrt(x)": 1 / np.sqrt(X),
    "__expf(x)": np.exp(X),
    "exp10f(x * 0.1f)": 10 ** (X * 0.1),
    "__exp10f(x * 0.1f)": 10 ** (X * 0.1),
    "__logf(x)": np.log(X),
    "__log2f(x)": np.log2(X),
    "__log10f(x)": np.log10(X),
    "__sinf(x)": np.sin(X),
    "__cosf(x)": np.cos(X),
    "__tanf(x)": np.tan(X),
    "__powf(x, 1.5f)": X**1.5,
    "powf(x, 2.5f) + pow(x, 2)": X**2.5 + X**2,
    "__fdividef(x, 3.0f)": X / 3,
    "__frcp_rn(x) + __fsqrt_rn(x) + __frsqrt_rn(x)": 1 / X + np.sqrt(X) + 1 / np.sqrt(X),
    "__saturatef(x - 0.5f)": np.clip(X - 0.5, 0, 1),
    "erff(x * 0.1f) + erfcf(x * 0.1f)": np.ones(64),
    "erf(x)": [math.erf(x) for x in X],
    "normcdff(x - 2.0f)": [statistics.NormalDist().cdf(x - 2) for x in X],
    "normcdfinvf(x * 0.03f)": [statistics.NormalDist().inv_cdf(x * 0.03) for x in X],
    "erf(erfinv(x * 0.03))": X * 0.03,
    "erfc(erfcinv(x * 0.06))": X * 0.06,
    "erfcxf(x)": [math.exp(x * x) * math.erfc(x) if x < 20 else (1 - 0.5 / x**2) / (x * math.sqrt(math.pi)) for x in X],
    "sinpif(x) + cospi(x)": np.sin(np.pi * X) + np.cos(np.pi * X),
    "rcbrtf(x) * cbrtf(x)": np.ones(64),
    "hypotf(x, 2.0f) * rhypotf(x, 2.0f)": np.ones(64),
    "norm3df(x, 2.0f, 1.0f)": np.sqrt(X * X + 5),
    "rnorm4df(x, 2.0f, 1.0f, 2.0f)": 1 / np.sqrt(X * X + 9),
    "tgammaf(x * 0.2f + 1.0f)": [math.gamma(x * 0.2 + 1) for x in X],
    "lgammaf(x)": [math.lgamma(x) for x in X],
    "tanhf(x) + sinhf(x * 0.1f) + atan2f(x, 2.0f)": np.tanh(X) + np.sinh(X * 0.1) + np.arctan2(X, 2),
    "fmaf(x, 2.0f, 1.0f) + fma(x, 2.0f, 1.0f)": 4 * X + 2,
    "log1pf(x) + expm1f(x * 0.1f) + exp2f(x * 0.1f)": np.log1p(X) + np.expm1(X * 0.1) + 2 ** (X * 0.1),
    "fmodf(x, 0.7f) + remainderf(0.5f, 3.0f)": np.fmod(X.astype(np.float32), np.float32(0.7)) + 0.5,
    "floorf(x) + ceilf(x) + truncf(x) + rintf(x)": np.floor(X) + np.ceil(X) + np.trunc(X) + np.rint(X),
    "copysignf(x, -1.0f) + fdimf(x, 1.0f) + fabsf(-x)": -X + np.maximum(X - 1, 0) + X,
    "ldexpf(x, 3) + scalbnf(x, 1)": 10 * X,
    "(x > 1.0f ? fminf(x, 2.0f) : fmaxf(x, 0.5f))": np.where(X > 1, np.minimum(X, 2), np.maximum(X, 0.5)),
}


def test_functions_of_positive_numbers(outputs_of, out):
    lines = "".join(f"y[{row} * 64 + i] = {expression};\n" for row, expression in enumerate(POSITIVE))
    source = f"__global__ void k(const float* v, float* y) {{ int i = threadIdx.x; float x = v[i];\n{lines} }}"
    (y,) = outputs_of(source, [X.astype(np.float32), out((len(POSITIVE), 64))], block=(64,))
    for row, (expression, expected) in enumerate(POSITIVE.items()):
        np.testing.assert_allclose(y[row], expected, rtol=3e-5, atol=3e-6, err_msg=expression)


EXACT = {
    "min(3, 5) + max(3u, 5u) + min(2.5f, 1.0f) + max(1, 2.5f) + min(-1ll, 4)": 3 + 5 + 1 + 2.5 - 1,
    "abs(-3) + abs(-2.5f) + fabs(-1.5) + llabs(-4ll)": 11,
    "__popc(0xff00ffu) + __popcll(~0ull) + __clz(1) + __clz(0) + __clzll(1)": 16 + 64 + 31 + 32 + 63,
    "__ffs(8) + __ffs(0) + __ffsll(1ll << 40)": 4 + 41,
    "__brev(1u) == 0x80000000u && __brevll(2ull) == 1ull << 62": 1,
    "__byte_perm(0x33221100, 0x77665544, 0x7250) == 0x77225500": 1,
    "__byte_perm(0x000080ff, 0, 0x0098) == 0x0000ffff": 0,
    "__funnelshift_l(0x80000000u, 1u, 1) + __funnelshift_r(0u, 1u, 31)": 3 + 2,
    "__mul24(-3, 5) + __umul24(0x1000003u, 5) + __mulhi(1 << 30, 8) + __umulhi(~0u, 2u)": -15 + 15 + 2 + 1,
    "__mul64hi(1ll << 62, 8) + __umul64hi(~0ull, 2)": 3,
    "__sad(3, -4, 1) + __usad(3u, 9u, 1u) + __hadd(-3, 6) + __rhadd(3, 4) + __float2int_rd(-2.1f)": 8 + 7 + 1 + 4 - 3,
    "__uhadd(~0u, 1u) / 0x40000000 + __urhadd(2u, 3u)": 2 + 3,
    "__dp4a(0x01020304, 0x01010101, 5) + __dp4a((int)0xff000000, 0x02000000, 0)": 15 - 2,
    "__float2int_rn(2.5f) + __float2int_rn(3.5f) + __float2int_rz(-2.7f) + __float2int_ru(2.1f)": 2 + 4 - 2 + 3,
    "__float2int_rz(1e20f) == 2147483647 && __float2int_rn(NAN) == 0 && __float2uint_rz(-5.0f) == 0": 1,
    "__float2ll_rz(-1e30f) == (-9223372036854775807ll - 1) && __double2ull_rz(1e30) == ~0ull": 1,
    "__int_as_float(__float_as_int(1.25f)) + __uint_as_float(0x40000000u) + __double_as_longlong(0.0)": 3.25,
    "__hiloint2double(__double2hiint(2.5), __double2loint(2.5)) + __int2float_rn(7) + __uint2double_rn(3u)": 12.5,
    "__fadd_ru(1.0f, 1e-10f) > 1.0f && __fadd_rd(1.0f, 1e-10f) == 1.0f && __fadd_rn(1.0f, 1e-10f) == 1.0f": 1,
    "__fmul_rz(1.0000001f, 1.0000001f) < __fmul_ru(1.0000001f, 1.0000001f)": 1,
    "__fdiv_rd(1.f, 3.f) < __fdiv_ru(1.f, 3.f) && __frcp_rd(3.f) < __frcp_ru(3.f)": 1,
    "__dadd_ru(1.0, 1e-30) > 1.0 && __fma_rn(2.0, 3.0, 1.0) == 7.0 && __fmaf_rd(1.f, 1.f, -1e-20f) < 1.f": 1,
    "__int2float_ru(16777217) == 16777218.0f && __int2float_rd(16777217) == 16777216.0f": 1,
    "__double2float_ru(1e-60) > 0 && __double2float_rd(1e-60) == 0": 1,
    "isnan(NAN) + isinf(INFINITY) + isfinite(1.0f) + signbit(-0.0f)": 4,
    "(CUDART_INF_F > FLT_MAX) + (CUDART_NAN_F != CUDART_NAN_F)": 2,
    "sinpif(7.0f) == 0.0f && cospif(2.5f) == 0.0f && cospif(3.0f) == -1.0f": 1,
    "__ldg(&table[2]) + __ldcs(table) + __ldcg(table + 1) + __ldca(table)": 3 + 1 + 2 + 1,
    "std::numeric_limits<int>::max() == INT_MAX && sizeof(uint32_t) == 4 && sizeof(size_t) == 8": 1,
}


def test_integer_and_bit_level_intrinsics(outputs_of, out):
    lines = "".join(f"y[{row}] = (double)({expression});\n" for row, expression in enumerate(EXACT))
    source = f"""#include <math_constants.h>
    __device__ const float table[3] = {{1, 2, 3}};
    __global__ void k(double* y) {{ {lines}
      float s, c; sincosf(0.5f, &s, &c); y[{len(EXACT)}] = s * s + c * c; __sincosf(0.5f, &s, &c);
      float whole, part = modff(2.75f, &whole); int e; float m = frexpf(8.0f, &e);
      y[{len(EXACT) + 1}] = whole + part + m + e; __stcs(y + {len(EXACT) + 2}, 4); }}"""
    (y,) = outputs_of(source, [out((len(EXACT) + 3,), "float64")], block=(1,))
    for row, (expression, expected) in enumerate(EXACT.items()):
        assert y[row] == expected, expression
    assert y[-3:].tolist() == pytest.approx([1.0, 7.25, 4.0], rel=1e-6)
