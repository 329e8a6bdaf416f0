"""kernels/1_047/plain.py in the form that KernelBench evaluates; `evaluate.py` fills in its kernel."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

// THE KERNEL

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
