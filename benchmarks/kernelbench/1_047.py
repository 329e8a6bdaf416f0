"""The kernel of kernels/1_047/plain.py in the form that KernelBench evaluates."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void sum_middle(const float* x, float* out, int length, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) {
    const float* start = x + (size_t)blockIdx.y * length * columns + column;
    float sum = 0.0f;
    for (int i = 0; i < length; ++i) {
      sum += start[(size_t)i * columns];
    }
    out[(size_t)blockIdx.y * columns + column] = sum;
  }
}

torch::Tensor launch(torch::Tensor x) {
  int batch = x.size(0), length = x.size(1), columns = x.size(2);
  auto out = torch::empty({batch, 1, columns}, x.options());
  dim3 grid((columns + 255) / 256, batch);
  sum_middle<<<grid, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), length, columns);
  return out;
}
"""
extension = load_inline(
    name="bench_1_047",
    cpp_sources="torch::Tensor launch(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["launch"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1  # the only one that the kernel sums over

    def forward(self, x):
        return extension.launch(x)
