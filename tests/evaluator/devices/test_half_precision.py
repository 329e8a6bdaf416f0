"""float16 and bfloat16: conversions of every bit pattern, arithmetic that rounds once, comparisons, vectors of two."""

import ml_dtypes
import numpy as np
import pytest

TYPES = {
    "float16": ("#include <cuda_fp16.h>\n", "__half", "__float2half", "__half2float", np.float16),
    "bfloat16": (
        "#include <cuda_bf16.h>\n",
        "__nv_bfloat16",
        "__float2bfloat16",
        "__bfloat162float",
        ml_dtypes.bfloat16,
    ),
}


@pytest.fixture(params=sorted(TYPES))
def number(request):
    return TYPES[request.param]


def test_every_bit_pattern_becomes_the_right_float(number, outputs_of, out):
    include, name, _, widen, dtype = number
    source = f"""{include}__global__ void k(const unsigned short* x, float* y) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = {widen}(*(const {name}*)(x + i)); }}"""
    bits = np.arange(65536, dtype=np.uint16)
    (y,) = outputs_of(source, [bits, out((65536,))], grid=(256,))
    np.testing.assert_array_equal(y, bits.view(dtype).astype(np.float32))


def test_floats_are_rounded_to_nearest_even(number, outputs_of, out):
    include, name, narrow, _, dtype = number
    source = f"""{include}__global__ void k(const float* x, {name}* y) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = {narrow}(x[i]); }}"""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 2**32, 65536, dtype=np.uint32).view(np.float32)
    table = np.arange(65536, dtype=np.uint16).view(dtype).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        x[:32768] = (table[::2] + table[1::2]) / 2  # ties
        expected = x.astype(dtype)
    (y,) = outputs_of(source, [x, out((65536,), expected.dtype.name)], grid=(256,))
    nan = np.isnan(x)
    np.testing.assert_array_equal(y[~nan].astype(np.float32), expected[~nan].astype(np.float32))
    assert np.isnan(y[nan].astype(np.float32)).all()


def test_arithmetic_rounds_once(number, outputs_of, out):
    include, name, _, _widen, dtype = number
    source = f"""{include}__global__ void k(const {name}* a, const {name}* b, {name}* y) {{
      int i = threadIdx.x; {name} p = a[i], q = b[i];
      {name} r[8] = {{p + q, p - q, p * q, p / q, -p, __hfma(p, q, p), __hmax(p, q), __habs(p)}};
      r[0] += q; r[1] *= p;
      for (int j = 0; j < 8; j++) y[i * 8 + j] = r[j]; }}"""
    generator = np.random.default_rng(1)
    a, b = generator.normal(size=(2, 256)).astype(dtype)
    (y,) = outputs_of(source, [a, b, out((256, 8), a.dtype.name)])
    p, q = a.astype(np.float64), b.astype(np.float64)

    def rounded(value):
        return np.asarray(value, np.float64).astype(np.float32).astype(dtype).astype(np.float64)

    total, difference = rounded(p + q), rounded(p - q)
    expected = [rounded(total + q), rounded(difference * p), rounded(p * q), rounded(p / q), -p, rounded(p * q + p)]
    expected += [np.maximum(p, q), np.abs(p)]
    np.testing.assert_array_equal(y.astype(np.float64), np.stack(expected, 1))


def test_fused_multiply_add_and_double_are_rounded_once(outputs_of, out):
    # The exact sum lies 2^-31 below a tie; rounding to float first would land on it and go up to 1 + 2^-9.
    source = """#include <cuda_fp16.h>
    __global__ void k(const half* x, half* y) {
      y[0] = __hfma(x[0], x[1], x[2]); y[1] = __double2half(1.0 + 3.0 / 2048 - 1.0 / (1u << 31)); }"""
    x = np.array([2**-5 * (1 + 2**-10), 2**-6 * (1 - 2**-10), 1 + 2**-10], np.float16)
    (y,) = outputs_of(source, [x, out((2,), "float16")], block=(1,))
    assert y.tolist() == [1 + 2**-10] * 2


def test_vectors_of_two_comparisons_and_functions(outputs_of, out):
    source = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void k(float* y) {
      __half2 a = __floats2half2_rn(1.5f, -2.0f), b = __float2half2_rn(0.5f);
      __half2 c = __halves2half2(__float2half(3.f), __int2half_rn(4));
      float2 f = __half22float2(__hfma2(a, b, c)); y[0] = f.x; y[1] = f.y;
      f = __half22float2(__hadd2(a, c) * b - __hmul2(a, b)); y[2] = f.x; y[3] = f.y;
      y[4] = __low2float(__hmax2(a, b)) + __high2float(__hmin2(a, b));
      __nv_bfloat162 d = __floats2bfloat162_rn(8.f, 9.f); float2 g = __bfloat1622float2(__hadd2(d, d));
      y[5] = g.x; y[6] = g.y;
      half h = __float2half(2.0f); y[7] = __half2float(hexp(h)) > 7.0f && __half2float(hsqrt(h)) < 1.5f;
      y[8] = __hgt(h, __float2half(1.f)) + 2 * (h == __float2half(2.f)) + 4 * __hisnan(h);
      y[8] += 8 * (h < __ushort_as_half(0x7c00));
      y[9] = __half2int_rz(__float2half(-3.7f)) + __half_as_ushort(__float2half(1.0f));
      half k2 = 3; k2 -= __float2half(1.f); y[10] = float(k2) + sizeof(half2);
      y[11] = __shfl_xor_sync(~0u, __float2half((float)threadIdx.x), 1);
    }"""
    (y,) = outputs_of(source, [out((12,))], block=(32,))
    assert y[:11].tolist() == [3.75, 3.0, 1.5, 2.0, -0.5, 16.0, 18.0, 1.0, 11.0, 15357.0, 6.0]


def test_types_are_unknown_without_their_header(fault_of, out):
    outcome, message = fault_of("__global__ void k(half* y) { y[0] = __float2half(1.f); }", [out((1,), "float16")])
    assert outcome == "compile_error"
    assert "half" in message


@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
@pytest.mark.parametrize("layouts", [("row", "col"), ("col", "row")])
def test_wmma_of_half_precision(outputs_of, out, shape, layouts):
    m, n, k = shape
    lead_a, lead_b = (k if layouts[0] == "row" else m), (n if layouts[1] == "row" else k)
    source = f"""#include <mma.h>
    using namespace nvcuda;
    __global__ void k(const half* a, const half* b, float* c) {{
      wmma::fragment<wmma::matrix_a, {m}, {n}, {k}, half, wmma::{layouts[0]}_major> fa;
      wmma::fragment<wmma::matrix_b, {m}, {n}, {k}, half, wmma::{layouts[1]}_major> fb;
      wmma::fragment<wmma::accumulator, {m}, {n}, {k}, float> acc;
      wmma::fill_fragment(acc, 0.0f);
      for (int step = 0; step < 2; ++step) {{
        wmma::load_matrix_sync(fa, a + step * {m * k}, {lead_a});
        wmma::load_matrix_sync(fb, b + step * {n * k}, {lead_b});
        wmma::mma_sync(acc, fa, fb, acc);
      }}
      for (int i = 0; i < acc.num_elements; ++i) acc.x[i] *= 2.0f;
      wmma::store_matrix_sync(c, acc, {n}, wmma::mem_row_major);
    }}"""
    generator = np.random.default_rng(2)
    a, b = generator.normal(size=(2, m, k)).astype(np.float16), generator.normal(size=(2, k, n)).astype(np.float16)
    stored_a = a if layouts[0] == "row" else np.swapaxes(a, 1, 2)
    stored_b = b if layouts[1] == "row" else np.swapaxes(b, 1, 2)
    arrays = [np.ascontiguousarray(stored_a), np.ascontiguousarray(stored_b)]
    (c,) = outputs_of(source, [*arrays, out((m, n))], block=(32,), order="random")
    expected = 2 * np.einsum("smk,skn->mn", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)


def test_wmma_of_other_types(outputs_of, out):
    source = """#include <mma.h>
    using namespace nvcuda::wmma;
    __global__ void k(const signed char* a, const __nv_bfloat16* b, const float* t, int* i, float* f, float* g) {
      fragment<matrix_a, 16, 16, 16, signed char, row_major> ia;
        fragment<matrix_b, 16, 16, 16, signed char, col_major> ib;
      fragment<accumulator, 16, 16, 16, int> ic; fill_fragment(ic, 1);
      load_matrix_sync(ia, a, 16); load_matrix_sync(ib, a, 16); mma_sync(ic, ia, ib, ic);
        store_matrix_sync(i, ic, 16, mem_row_major);
      fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> ba;
        fragment<matrix_b, 16, 16, 16, __nv_bfloat16, col_major> bb;
      fragment<accumulator, 16, 16, 16, float> bc; fill_fragment(bc, 0.f);
      load_matrix_sync(ba, b, 16); load_matrix_sync(bb, b, 16); mma_sync(bc, ba, bb, bc);
        store_matrix_sync(f, bc, 16, mem_col_major);
      fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> ta;
        fragment<matrix_b, 16, 16, 8, precision::tf32, col_major> tb;
      fragment<accumulator, 16, 16, 8, float> tc; load_matrix_sync(tc, f, 16, mem_row_major);
      load_matrix_sync(ta, t, 8); load_matrix_sync(tb, t, 8);
      for (int e = 0; e < ta.num_elements; ++e) ta.x[e] = __float_to_tf32(ta.x[e]);
      mma_sync(tc, ta, tb, tc); store_matrix_sync(g, tc, 16, mem_row_major);
    }"""
    generator = np.random.default_rng(3)
    a = generator.integers(-128, 128, (16, 16)).astype(np.int8)
    b = generator.normal(size=(16, 16)).astype(ml_dtypes.bfloat16)
    t = generator.normal(size=(16, 8)).astype(np.float32)
    i, f, g = outputs_of(source, [a, b, t, out((16, 16), "int32"), out((16, 16)), out((16, 16))], block=(32,))
    wide = a.astype(np.int64)
    np.testing.assert_array_equal(i, wide @ wide.T + 1)
    wide = b.astype(np.float64)
    np.testing.assert_allclose(f, (wide @ wide.T).T, rtol=1e-5, atol=1e-4)
    exact = t.astype(np.float64) @ t.astype(np.float64).T + f
    np.testing.assert_allclose(g, exact, rtol=2e-3, atol=2e-2)
    assert np.abs(g - exact).max() > 1e-5  # tf32 keeps ten bits of the mantissa


def test_wmma_shape_that_does_not_exist(fault_of, out):
    source = """#include <mma.h>
    using namespace nvcuda;
    __global__ void k(float* y) { wmma::fragment<wmma::matrix_a, 16, 8, 16, half, wmma::row_major> f;
      y[0] = f.x[0]; }"""
    outcome, message = fault_of(source, [out((1,))])
    assert outcome == "compile_error"
    assert "no wmma shape" in message
