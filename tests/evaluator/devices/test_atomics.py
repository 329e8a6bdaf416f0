"""Read-modify-write functions, on one OS thread and on two."""

import pytest

SOURCE = """__device__ int counters[12] = {0, 0, 1000, 0, 255};
__device__ double d; __device__ float f[2]; __device__ unsigned long long u[4]; __device__ int ended;
__global__ void k(int* y, double* z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&counters[0], 1); atomicSub(&counters[1], 2); atomicMin(&counters[2], i - 5); atomicMax(&counters[3], i);
  atomicAnd(&counters[4], ~(1 << (i & 3))); atomicOr(&counters[5], 1 << (i & 7)); atomicXor(&counters[6], i);
  atomicInc((unsigned*)&counters[7], 9u); atomicDec((unsigned*)&counters[8], 9u); atomicExch(&counters[9], 42);
  if (atomicCAS(&counters[10], 0, i + 1) == 0) atomicAdd(&counters[11], 1);
  atomicAdd(&d, 0.5); atomicAdd(&f[0], 0.25f); atomicExch(&f[1], 3.0f);
  atomicAdd(&u[0], 3ull); atomicMax(&u[1], 7ull + i); atomicCAS(&u[2], 0ull, 5ull); atomicAdd_block(&u[3], 1ull);
  __threadfence();
  if (atomicAdd(&ended, 1) == gridDim.x * blockDim.x - 1) {  // the last thread sees what all others did
    for (int j = 0; j < 12; j++) y[j] = counters[j];
    y[10] = counters[10] > 0;
    z[0] = d; z[1] = f[0]; z[2] = f[1]; z[3] = u[0]; z[4] = u[1]; z[5] = u[2]; z[6] = u[3];
  }
}"""


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("threads", [1, 2])
def test_atomics_of_every_kind(run_kernel, out, order, threads):
    report = run_kernel(
        SOURCE,
        [out((12,), "int32"), out((7,), "float64")],
        grid=(5,),
        block=(40,),
        order=order,
        threads=threads,
        seed=2,
    )
    y, z = report.outputs
    assert y.tolist() == [200, -400, -5, 199, 240, 255, 0, 0, 0, 42, 1, 1]
    assert z.tolist() == [100.0, 50.0, 3.0, 600.0, 206.0, 5.0, 200.0]
    assert report.state_changed


def test_old_value_is_returned(outputs_of, out):
    source = (
        "__global__ void k(int* y) { __shared__ int c; if (!threadIdx.x) c = 0; __syncthreads();\n"
        " y[atomicAdd(&c, 1)] = 1; }"
    )
    (y,) = outputs_of(source, [out((100,), "int32")], block=(100,))
    assert (y == 1).all()


def test_atomics_on_half_precision(outputs_of, out):
    source = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void k(float* y) { __shared__ __half h; __shared__ __half2 h2; __shared__ __nv_bfloat16 b;
      if (!threadIdx.x) { h = __float2half(0.f); h2 = __floats2half2_rn(0.f, 1.f); b = __float2bfloat16(0.f); }
      __syncthreads();
      atomicAdd(&h, __float2half(1.f)); atomicAdd(&h2, __floats2half2_rn(1.f, 2.f));
        atomicAdd(&b, __float2bfloat16(0.5f));
      __syncthreads();
      if (!threadIdx.x) { y[0] = __half2float(h); y[1] = __low2float(h2); y[2] = __high2float(h2);
        y[3] = __bfloat162float(b); } }"""
    (y,) = outputs_of(source, [out((4,))], block=(64,))
    assert y.tolist() == [64, 64, 129, 32]


def test_spin_lock_between_the_threads_of_a_block(outputs_of, out):
    source = """__global__ void k(int* y) { __shared__ int lock, total;
      if (!threadIdx.x) { lock = 0; total = 0; } __syncthreads();
      for (bool done = false; !done;) if (atomicCAS(&lock, 0, 1) == 0) { total += threadIdx.x; __threadfence();
        atomicExch(&lock, 0); done = true; }
      __syncthreads(); if (!threadIdx.x) y[0] = total; }"""
    (y,) = outputs_of(source, [out((1,), "int32")], block=(128,))
    assert y[0] == 127 * 64


def test_thread_that_waits_for_a_later_one(outputs_of, out):
    source = """__global__ void k(int* y) { __shared__ int flag; if (!threadIdx.x) flag = 0; __syncthreads();
      if (threadIdx.x == 0) while (atomicAdd(&flag, 0) == 0) __nanosleep(10);
      if (threadIdx.x == 63) atomicExch(&flag, 7);
      __syncthreads(); y[threadIdx.x] = flag; }"""
    (y,) = outputs_of(source, [out((64,), "int32")], block=(64,))
    assert (y == 7).all()
