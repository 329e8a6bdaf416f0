"""Convolutions of KernelBench level 1, plain and transposed, over one to three dimensions.

PyTorch allows TF32 in convolutions, though not in matrix products; so do these tasks.
"""

from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Task


def conv_1d(nn, x, conv1d_weight):
    return nn.conv1d(x, conv1d_weight)


def conv_2d(nn, x, conv2d_weight):
    return nn.conv2d(x, conv2d_weight)


def conv_3d(nn, x, conv3d_weight):
    return nn.conv3d(x, conv3d_weight)


def conv_transposed_1d(nn, x, conv1d_transpose_weight):
    return nn.conv_transpose1d(x, conv1d_transpose_weight)


def conv_transposed_2d(nn, x, conv_transpose2d_weight):
    return nn.conv_transpose2d(x, conv_transpose2d_weight)


def conv_transposed_3d(nn, x, conv_transpose3d_weight):
    return nn.conv_transpose3d(x, conv_transpose3d_weight)


CONV_1D = Task(
    id="1_067",
    name="conv_standard_1D",
    family="convolution",
    source=forward_text(conv_1d),
    sizes={
        "cpu": uniform(x=(5, 12, 1001)) + layer("conv1d", (20, 12, 3), bias=False),
        "kb": uniform(x=(32, 64, 131072)) + layer("conv1d", (128, 64, 3), bias=False),
        "kb_v0": normal(x=(16, 3, 512)) + layer("conv1d", (64, 3, 3), bias=False),
    },
    precision="tf32",
)

CONV_2D = Task(
    id="1_063",
    name="conv_standard_2D__square_input__square_kernel",
    family="convolution",
    source=forward_text(conv_2d),
    sizes={
        "cpu": uniform(x=(3, 6, 45, 45)) + layer("conv2d", (18, 6, 3, 3), bias=False),
        "kb": uniform(x=(16, 16, 1024, 1024)) + layer("conv2d", (128, 16, 3, 3), bias=False),
        "kb_v0": normal(x=(16, 3, 256, 256)) + layer("conv2d", (64, 3, 3, 3), bias=False),
    },
    precision="tf32",
)

CONV_3D = Task(
    id="1_054",
    name="conv_standard_3D__square_input__square_kernel",
    family="convolution",
    source=forward_text(conv_3d),
    sizes={
        "cpu": uniform(x=(2, 3, 18, 18, 18)) + layer("conv3d", (10, 3, 3, 3, 3), bias=False),
        "kb": uniform(x=(16, 3, 64, 64, 64)) + layer("conv3d", (64, 3, 3, 3, 3), bias=False),
        "kb_v0": normal(x=(16, 3, 64, 64, 64)) + layer("conv3d", (64, 3, 3, 3, 3), bias=False),
    },
    precision="tf32",
)

CONV_TRANSPOSED_1D = Task(
    id="1_064",
    name="conv_transposed_1D",
    family="convolution",
    source=forward_text(conv_transposed_1d),
    sizes={
        "cpu": uniform(x=(5, 12, 1001)) + layer("conv1d_transpose", (12, 20, 3), bias=False),
        "kb": uniform(x=(64, 128, 65536)) + layer("conv1d_transpose", (128, 128, 3), bias=False),
        "kb_v0": normal(x=(16, 64, 128)) + layer("conv1d_transpose", (64, 3, 3), bias=False),
    },
    precision="tf32",
)

CONV_TRANSPOSED_2D = Task(
    id="1_057",
    name="conv_transposed_2D__square_input__square_kernel",
    family="convolution",
    source=forward_text(conv_transposed_2d),
    sizes={
        "cpu": uniform(x=(3, 12, 41, 41)) + layer("conv_transpose2d", (12, 9, 3, 3), bias=False),
        "kb": uniform(x=(8, 64, 1024, 1024)) + layer("conv_transpose2d", (64, 64, 3, 3), bias=False),
        "kb_v0": normal(x=(16, 32, 128, 128)) + layer("conv_transpose2d", (32, 64, 3, 3), bias=False),
    },
    precision="tf32",
)

CONV_TRANSPOSED_3D = Task(
    id="1_061",
    name="conv_transposed_3D__square_input__square_kernel",
    family="convolution",
    source=forward_text(conv_transposed_3d),
    sizes={
        "cpu": uniform(x=(2, 5, 15, 15, 15)) + layer("conv_transpose3d", (5, 6, 3, 3, 3), bias=False),
        "kb": uniform(x=(8, 48, 64, 64, 64)) + layer("conv_transpose3d", (48, 48, 3, 3, 3), bias=False),
        "kb_v0": normal(x=(16, 3, 32, 32, 32)) + layer("conv_transpose3d", (3, 64, 3, 3, 3), bias=False),
    },
    precision="tf32",
)
