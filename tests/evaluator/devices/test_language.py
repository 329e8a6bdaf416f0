"""Built-in variables, templates, shared memory, barriers, atomics and the other parts of the language."""

import dataclasses

import numpy as np
import pytest

from evaluator.devices import cpu
from evaluator.program.plan import Module
from evaluator.records import Limits

ORDERS = ["forward", "reverse", "random"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("threads", [1, 3])
def test_three_dimensional_indices(outputs_of, out, order, threads):
    source = """__global__ void k(int* y) {
      int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      y[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + t + (warpSize - 32);
    }"""
    (y,) = outputs_of(
        source, [out((24, 30), "int32")], grid=(2, 3, 4), block=(5, 3, 2), order=order, seed=5, threads=threads
    )
    assert np.array_equal(y, np.arange(24)[:, None] * 1000 + np.arange(30))


@pytest.mark.parametrize("block", [1, 33, 1024])
def test_every_thread_of_a_block_runs_once(outputs_of, out, block):
    source = "__global__ void k(int* y) { y[threadIdx.x] = 1; __syncthreads(); atomicAdd(&y[threadIdx.x], 1); }"
    (y,) = outputs_of(source, [out((block,), "int32")], block=(block,))
    assert (y == 2).all()


def test_template_by_name_expression_with_a_type_of_its_own(outputs_of, out):
    source = """struct Twice { __device__ float operator()(float v) const { return 2 * v; } };
    template <typename T, int Offset, class Function> __global__ void k(const T* x, T* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = Function()(x[i]) + Offset;
    }"""
    x = np.arange(300, dtype=np.float32)
    (y,) = outputs_of(source, [x, out((300,)), 300], kernel="k<float, 3, Twice>", grid=(2,))
    assert np.array_equal(y, 2 * x + 3)


def test_extern_c_qualifiers_options_and_macros(outputs_of, out):
    source = """#include <cuda_runtime.h>
    #define ADD(a, b) ((a) + \\
                       (b))
    extern "C" {
    __device__ __forceinline__ int twice(int v) { return ADD(v, v); }
    __device__ __noinline__ int square(int v) { return v * v; }
    __constant__ int table[3] = {10, 20, 30};
    __device__ const float kHalf = 0.5f;
    static __device__ int helper(int v) { return twice(v) + square(v); }
    }
    extern "C" __global__ void __launch_bounds__(256, 2) k(int* __restrict__ y, const bool flag) {
      #pragma unroll
      for (int j = 0; j < COUNT; ++j)
        y[threadIdx.x * COUNT + j] = helper(threadIdx.x) + table[j] + flag + int(2 * kHalf);
    }"""
    (y,) = outputs_of(source, [out((64, 3), "int32"), True], block=(64,), options=("-DCOUNT=3", "--use_fast_math"))
    i = np.arange(64)[:, None]
    assert np.array_equal(y, 2 * i + i * i + [10, 20, 30] + 2)


DYNAMIC_SHARED = [
    "__global__ void k(const float* x, float* y) {{ extern __shared__ float s[]; {body} }}",
    "__global__ void k(const float* x, float* y) {{ extern __shared__ __align__(16) float s[]; {body} }}",
    "extern __shared__ float s[];\n__global__ void k(const float* x, float* y) {{ {body} }}",
    "extern __shared__ alignas(16) unsigned char raw[];\n__device__ float* smem() {{ return (float*)raw; }}\n"
    "__global__ void k(const float* x, float* y) {{ float* s = smem(); {body} }}",
    "template <class T> __global__ void k(const T* x, T* y) {{ extern __shared__ char raw[];"
    " T* s = reinterpret_cast<T*>(raw); {body} }}",
    "__global__ void k(const float* x, float* y) {{ extern volatile __shared__ float s[]; {body} }}",
]


@pytest.mark.parametrize("source", DYNAMIC_SHARED)
@pytest.mark.parametrize("guard", ["left", "right"])
def test_dynamic_shared_memory(outputs_of, out, source, guard):
    body = "int i = threadIdx.x; s[i] = x[i]; __syncthreads(); y[i] = s[blockDim.x - 1 - i];"
    name = "k<float>" if "template" in source else "k"
    x = np.arange(100, dtype=np.float32)
    (y,) = outputs_of(source.format(body=body), [x, out((100,))], kernel=name, block=(100,), shared=400, guard=guard)
    assert np.array_equal(y, x[::-1])


def test_two_dimensional_dynamic_shared_memory(outputs_of, out):
    source = """__global__ void k(float* y) { extern __shared__ float tile[][8];
      tile[threadIdx.y][threadIdx.x] = threadIdx.y * 8 + threadIdx.x; __syncthreads();
      y[threadIdx.y * 8 + threadIdx.x] = tile[threadIdx.x][threadIdx.y]; }"""
    (y,) = outputs_of(source, [out((8, 8))], block=(8, 8), shared=256)
    assert np.array_equal(y, np.arange(64).reshape(8, 8).T)


def test_large_dynamic_shared_memory(outputs_of, out):
    source = """__global__ void k(int* y) { extern __shared__ int s[];
      for (int i = threadIdx.x; i < 57344; i += blockDim.x) s[i] = i;
      __syncthreads(); y[threadIdx.x] = s[57343 - threadIdx.x]; }"""
    (y,) = outputs_of(source, [out((256,), "int32")], shared=57344 * 4)
    assert np.array_equal(y, 57343 - np.arange(256))


def test_static_shared_memory_of_the_full_48_kb(outputs_of, out):
    source = """__global__ void k(int* y) { __shared__ alignas(16) int a[8192]; static __shared__ int b[4096];
      for (int i = threadIdx.x; i < 8192; i += blockDim.x) a[i] = i;
      for (int i = threadIdx.x; i < 4096; i += blockDim.x) b[i] = -i;
      __syncthreads(); y[threadIdx.x] = a[8191 - threadIdx.x] + b[threadIdx.x]; }"""
    (y,) = outputs_of(source, [out((256,), "int32")], threads=2, grid=(1,))
    assert np.array_equal(y, 8191 - 2 * np.arange(256))


@pytest.mark.parametrize("order", ORDERS)
def test_barriers_that_count(outputs_of, out, order):
    source = """__global__ void k(int* y) { int i = threadIdx.x;
      int c = __syncthreads_count(i < 100), a = __syncthreads_and(i < 300), o = __syncthreads_or(i == 77);
      int none = __syncthreads_or(i > 300), some = __syncthreads_and(i != 3);
      y[i] = c * 10000 + a * 1000 + o * 100 + none * 10 + some; }"""
    (y,) = outputs_of(source, [out((256,), "int32")], order=order)
    assert (y == 1001100).all()


def test_two_modules_that_use_the_same_names(plan_of, out):
    text = "#define TILE {n}\n__device__ int f(int v) {{ return v + TILE; }}\n"
    text += '__device__ int state = {n};\nextern "C" __global__ void k(int* y) {{ y[{n}] = f(state); }}'
    plan, _ = plan_of(text.format(n=0), [out((2,), "int32")], block=(1,))
    second = Module(text.format(n=1), (), ("k",))
    steps = (plan.steps[0], dataclasses.replace(plan.steps[0], module=1))
    plan = dataclasses.replace(plan, modules=(plan.modules[0], second), steps=steps)
    with cpu.Session(cpu.compile(plan, Limits()), Limits()) as session:
        assert session.run([]).outputs[0].tolist() == [0, 2]


def test_printf_goes_nowhere_and_clocks_advance(outputs_of, out):
    source = """__global__ void k(int* y) {
      long long t = clock64(); printf("hello %d\\n", threadIdx.x); printf("line\\n");
      y[threadIdx.x] = clock64() > t; }"""
    (y,) = outputs_of(source, [out((32,), "int32")], block=(32,))
    assert (y == 1).all()


def test_vector_types(outputs_of, out):
    source = """__global__ void k(const float4* x, float4* y, int2* z) { int i = threadIdx.x; float4 v = x[i];
      float2 h = make_float2(v.x + v.y, v.z + v.w); uchar4 c = make_uchar4(1, 2, 3, 4); double2 d = make_double2(1, 2);
      ulonglong2 u = make_ulonglong2(5, 6); dim3 e(3, 4); uint3 g = {7, 8, 9};
      y[i] = make_float4(h.x, h.y, c.w + d.y, u.x + e.y + e.z + g.z); z[i] = make_int2(i, sizeof(float3)); }"""
    x = np.random.default_rng(0).random((8, 4), np.float32)
    y, z = outputs_of(source, [x, out((8, 4)), out((8, 2), "int32")], block=(8,))
    assert np.array_equal(y, np.stack([x[:, 0] + x[:, 1], x[:, 2] + x[:, 3], np.full(8, 6.0), np.full(8, 19.0)], 1))
    assert np.array_equal(z, np.stack([np.arange(8), np.full(8, 12)], 1))


def test_device_globals_begin_every_run_as_loaded_and_changes_are_told(run_kernel, out):
    source = "__device__ int calls = 5; __global__ void k(int* y) { y[0] = calls++; }"
    report = run_kernel(source, [out((1,), "int32")], block=(1,))
    assert report.outputs[0][0] == 5
    assert report.state_changed
    assert not run_kernel(
        "__device__ int c = 5; __global__ void k(int* y) { y[0] = c; }", [out((1,), "int32")]
    ).state_changed


@pytest.mark.parametrize(
    "header", ["stdint.h", "cstdint", "math.h", "cmath", "float.h", "cfloat", "limits.h", "climits"]
)
def test_standard_headers(outputs_of, out, header):
    source = f"#include <{header}>\n__global__ void k(int* y) {{ uint32_t v = 3; y[0] = (int)v; }}"
    assert outputs_of(source, [out((1,), "int32")], block=(1,))[0][0] == 3
