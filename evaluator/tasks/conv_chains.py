"""Chains of a convolution and what follows it, KernelBench level 2."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import Array, Task


def conv_relu_bias(nn, x, bias, conv_weight, conv_bias):
    x = nn.relu(nn.conv2d(x, conv_weight, conv_bias))
    return x + bias


def conv_transposed_subtract_tanh(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose2d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    return nn.tanh(x - bias)


def conv_instance_norm_divide(nn, x, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias)
    return nn.instance_norm(x, eps=1e-5) / 2.0


def conv_multiply_leaky_relu_gelu(nn, x, multiplier, conv_weight, conv_bias):
    x = nn.conv2d(x, conv_weight, conv_bias) * multiplier
    return nn.gelu(nn.leaky_relu(x, negative_slope=0.01))


def conv_transposed_relu_group_norm(nn, x, conv_transpose_weight, group_norm_weight, group_norm_bias):
    x = nn.relu(nn.conv_transpose3d(x, conv_transpose_weight))
    return nn.group_norm(x, 8, group_norm_weight, group_norm_bias, eps=1e-5)


def conv_group_norm_min_clamp_dropout(nn, x, conv_weight, conv_bias, norm_weight, norm_bias):
    x = nn.conv3d(x, conv_weight, conv_bias)
    x = nn.group_norm(x, 8, norm_weight, norm_bias)
    x = nn.clamp(nn.minimum(x, 0.0), min=0.0, max=1.0)
    return nn.dropout(x, p=0.2)


def per_channel(name: str, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """A parameter of the model's own, beside those of its layers."""
    return (parameter(name, shape, "normal(0,1)"),)


CONV_RELU_BIAS = Task(
    id="2_001",
    name="Conv2D_ReLU_BiasAdd",
    family="chain",
    source=forward_text(conv_relu_bias),
    sizes={
        "cpu": uniform(x=(3, 6, 45, 45)) + per_channel("bias", (18, 1, 1)) + layer("conv", (18, 6, 3, 3)),
        "kb": uniform(x=(128, 64, 128, 128)) + per_channel("bias", (128, 1, 1)) + layer("conv", (128, 64, 3, 3)),
        "kb_v0": normal(x=(128, 3, 32, 32)) + per_channel("bias", (16, 1, 1)) + layer("conv", (16, 3, 3, 3)),
    },
    precision="tf32",
)

CONV_TRANSPOSED_SUBTRACT_TANH = Task(
    id="2_005",
    name="ConvTranspose2d_Subtract_Tanh",
    family="chain",
    source=forward_text(conv_transposed_subtract_tanh),
    sizes={
        "cpu": uniform(x=(3, 10, 29, 29))
        + per_channel("bias", (8, 1, 1))
        + layer("conv_transpose", (10, 8, 4, 4), outputs=8),
        "kb": uniform(x=(32, 64, 256, 256))
        + per_channel("bias", (64, 1, 1))
        + layer("conv_transpose", (64, 64, 4, 4), outputs=64),
        "kb_v0": normal(x=(128, 32, 16, 16))
        + per_channel("bias", (16, 1, 1))
        + layer("conv_transpose", (32, 16, 4, 4), outputs=16),
    },
    precision="tf32",
)

CONV_INSTANCE_NORM_DIVIDE = Task(
    id="2_017",
    name="Conv2d_InstanceNorm_Divide",
    family="chain",
    source=forward_text(conv_instance_norm_divide),
    sizes={
        "cpu": uniform(x=(3, 6, 45, 45)) + layer("conv", (18, 6, 3, 3)),
        "kb": uniform(x=(128, 64, 128, 128)) + layer("conv", (128, 64, 3, 3)),
        "kb_v0": normal(x=(128, 3, 32, 32)) + layer("conv", (16, 3, 3, 3)),
    },
    precision="tf32",
)

CONV_MULTIPLY_LEAKY_RELU_GELU = Task(
    id="2_054",
    name="Conv2d_Multiply_LeakyReLU_GELU",
    family="chain",
    source=forward_text(conv_multiply_leaky_relu_gelu),
    sizes={
        "cpu": uniform(x=(3, 6, 45, 45)) + per_channel("multiplier", (18, 1, 1)) + layer("conv", (18, 6, 3, 3)),
        "kb": uniform(x=(64, 64, 256, 256)) + per_channel("multiplier", (64, 1, 1)) + layer("conv", (64, 64, 3, 3)),
        "kb_v0": normal(x=(128, 3, 32, 32)) + per_channel("multiplier", (16, 1, 1)) + layer("conv", (16, 3, 3, 3)),
    },
    precision="tf32",
)

CONV_TRANSPOSED_RELU_GROUP_NORM = Task(
    id="2_061",
    name="ConvTranspose3d_ReLU_GroupNorm",
    family="chain",
    source=forward_text(conv_transposed_relu_group_norm),
    sizes={
        "cpu": uniform(x=(2, 5, 12, 14, 14))
        + layer("conv_transpose", (5, 8, 3, 3, 3), bias=False)
        + affine("group_norm", 8),
        "kb": uniform(x=(16, 64, 32, 32, 32))
        + layer("conv_transpose", (64, 128, 3, 3, 3), bias=False)
        + affine("group_norm", 128),
        "kb_v0": normal(x=(16, 64, 8, 16, 16))
        + layer("conv_transpose", (64, 128, 3, 3, 3), bias=False)
        + affine("group_norm", 128),
    },
    precision="tf32",
)

CONV_GROUP_NORM_MIN_CLAMP_DROPOUT = Task(
    id="2_083",
    name="Conv3d_GroupNorm_Min_Clamp_Dropout",
    family="chain",
    source=forward_text(conv_group_norm_min_clamp_dropout),
    sizes={
        "cpu": uniform(x=(2, 3, 10, 17, 17)) + layer("conv", (16, 3, 3, 3, 3)) + affine("norm", 16),
        "kb": uniform(x=(128, 3, 16, 64, 64)) + layer("conv", (16, 3, 3, 3, 3)) + affine("norm", 16),
        "kb_v0": normal(x=(128, 3, 16, 32, 32)) + layer("conv", (16, 3, 3, 3, 3)) + affine("norm", 16),
    },
    precision="tf32",
    degenerate="min(x, 0) held between 0 and 1 is 0 for every finite value, and dropout of zeros is zero",
)
