"""An honest relu, and what else a kernel can do to the process that runs it, with the outcomes that it may have."""

from evaluator.records import Outcome

HEAD = """import cupy as cp

SOURCE = r'''
__device__ __noinline__ float fall(float v, long n) {
  volatile float kept[64];
  kept[n % 64] = v;
  return n < 0 ? v : fall(v + 1.0f, n + 1) + kept[n % 64];
}
extern "C" __global__ void k(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) { BODY }
}
'''
kernel = cp.RawKernel(SOURCE, "k")


def forward(x):
    y = cp.empty_like(x)
    kernel(((x.size + 255) // 256,), (256,), (x, y, x.size))
    return y
"""
HONEST = HEAD.replace("BODY", "y[i] = fmaxf(x[i], 0.0f);")
BROKEN = {
    "endless": ("while (true) { y[i] = x[i]; if (y[i] == 12345.678f) break; }", {Outcome.TIMEOUT}),
    "illegal access": ("y[i] = x[i + (1l << 40)];", {Outcome.OUT_OF_BOUNDS, Outcome.CRASHED}),
    "null pointer": ("y[i] = *(const float*)0;", {Outcome.OUT_OF_BOUNDS, Outcome.CRASHED}),
    "trap": ("y[i] = x[i]; __trap();", {Outcome.CRASHED}),
    "no memory": ("for (int j = 0; j < 1024; ++j) *(char*)malloc(1 << 24) = (char)j; y[i] = x[i];", None),
    "deep recursion": ("y[i] = fall(x[i], n);", {Outcome.OUT_OF_BOUNDS, Outcome.CRASHED}),
    "misaligned": ("y[i] = *(const float*)((const char*)x + 1);", {Outcome.MISALIGNED}),
}


def broken(how: str) -> str:
    return HEAD.replace("BODY", BROKEN[how][0])
