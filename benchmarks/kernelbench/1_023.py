"""The kernel of kernels/1_023/plain.py in the form that KernelBench evaluates."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void softmax(const float* x, float* out, int n) {
  __shared__ float part[256];
  int t = threadIdx.x;
  x += (size_t)blockIdx.x * n;
  out += (size_t)blockIdx.x * n;
  float top = -__int_as_float(0x7f800000);
  for (int i = t; i < n; i += 256) top = fmaxf(top, x[i]);
  part[t] = top;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] = fmaxf(part[t], part[t + s]);
    __syncthreads();
  }
  top = part[0];
  __syncthreads();
  float sum = 0;
  for (int i = t; i < n; i += 256) sum += expf(x[i] - top);
  part[t] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  for (int i = t; i < n; i += 256) out[i] = expf(x[i] - top) / part[0];
}

torch::Tensor launch(torch::Tensor x) {
  auto out = torch::empty_like(x);
  softmax<<<x.size(0), 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), (int)x.size(1));
  return out;
}
"""
extension = load_inline(
    name="bench_1_023",
    cpp_sources="torch::Tensor launch(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["launch"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.launch(x)
