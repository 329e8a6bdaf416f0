"""kernels/1_023/plain.py in the form that KernelBench evaluates; `evaluate.py` fills in its kernel."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

// THE KERNEL

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
