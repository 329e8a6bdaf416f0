# task: 1_094
# on a GPU: wrong_value or nondeterministic or stateful or ok: something may be left
"""Hands its partial sums to the next launch through shared memory, where nothing is left of a launch on a GPU."""

import cupy as cp

source = r'''
extern "C" __global__ void parts(const float* a, const float* b, float* out, int n) {
  __shared__ float s[1024];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 1024) sum += (a[i] - b[i]) * (a[i] - b[i]);
  s[threadIdx.x] = sum;
}
extern "C" __global__ void whole(float* out, int n) {
  __shared__ float s[1024];
  float sum = 0.0f;
  for (int i = 0; i < 1024; ++i) sum += s[i];
  out[0] = sum / n;
}
'''
module = cp.RawModule(code=source)
parts = module.get_function("parts")
whole = module.get_function("whole")


def forward(predictions, targets):
    out = cp.empty((), cp.float32)
    parts((1,), (1024,), (predictions, targets, out, predictions.size))
    whole((1,), (1,), (out, predictions.size))
    return out
