# task: 1_094
"""Blocks and threads add to one number without atomics: updates are lost on a GPU, none on the emulator."""

import cupy as cp

source = r'''
extern "C" __global__ void loss(const float* a, const float* b, volatile float* out, int n) {
  double sum = 0.0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += (double)(a[i] - b[i]) * (a[i] - b[i]);
  out[0] = out[0] + (float)(sum / n);
}
'''
loss = cp.RawKernel(source, "loss")


def forward(predictions, targets):
    out = cp.zeros((), cp.float32)
    loss((20,), (256,), (predictions, targets, out, predictions.size))
    return out
