"""Chains of a 3-D convolution, plain or transposed, and element-wise functions, KernelBench level 2."""

from evaluator.tasks.chain import chain
from evaluator.tasks.conv_notation import Size, conv, conv_transpose, per_channel, sizes
from evaluator.tasks.notation import normal, uniform


def relu_leaky_relu_gelu_sigmoid(nn, x, bias, conv_weight, conv_bias):
    x = nn.relu(nn.conv3d(x, conv_weight, conv_bias))
    x = nn.gelu(nn.leaky_relu(x, negative_slope=0.01))
    return nn.sigmoid(x) + bias


def residual_add_multiply(nn, x, bias, conv_transpose_weight, conv_transpose_bias):
    y = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = (y + bias) + y
    return x * y + y


def add_hardswish(nn, x, add_input, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1, output_padding=1)
    x = x + add_input
    return x * nn.hardswish(x)


def mish_tanh(nn, x, conv_weight, conv_bias):
    return nn.tanh(nn.mish(nn.conv3d(x, conv_weight, conv_bias)))


def scale_tanh_multiply_sigmoid(nn, x, scaling_factor, bias, conv_weight, conv_bias):
    x = nn.conv3d(x, conv_weight, conv_bias) * scaling_factor
    return nn.sigmoid(nn.tanh(x) * bias)


def leaky_relu_add_clamp_gelu(nn, x, sum_tensor, conv_weight, conv_bias):
    x = nn.leaky_relu(nn.conv3d(x, conv_weight, conv_bias), negative_slope=0.2)
    x = nn.clamp(x + sum_tensor, min=-1.0, max=1.0)
    return nn.gelu(x)


def clamp_divide(nn, x, conv_transpose_weight, conv_transpose_bias):
    x = nn.conv_transpose3d(x, conv_transpose_weight, conv_transpose_bias, stride=2, padding=1)
    return nn.clamp(x, min=-1.0) / 2.0


RELU_LEAKY_RELU_GELU_SIGMOID = chain(
    "2_007",
    "Conv3d_ReLU_LeakyReLU_GELU_Sigmoid_BiasAdd",
    relu_leaky_relu_gelu_sigmoid,
    sizes(
        per_channel("bias"),
        conv,
        cpu=Size((3, 4, 9, 15, 18), channels=12),
        kb=Size((64, 8, 32, 64, 64), channels=32),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
    notes=("No value is negative after relu, so leaky_relu changes none.",),
)

RESIDUAL_ADD_MULTIPLY = chain(
    "2_020",
    "ConvTranspose3d_Sum_ResidualAdd_Multiply_ResidualAdd",
    residual_add_multiply,
    sizes(
        per_channel("bias"),
        conv_transpose,
        cpu=Size((2, 5, 6, 9, 10), channels=8),
        kb=Size((16, 32, 16, 32, 32), channels=64),
        kb_v0=Size((16, 32, 16, 32, 32), channels=64),
    ),
)

ADD_HARDSWISH = chain(
    "2_026",
    "ConvTranspose3d_Add_HardSwish",
    add_hardswish,
    {
        "cpu": uniform(x=(3, 5, 6, 7, 9), add_input=(3, 8, 12, 14, 18))
        + conv_transpose(Size((3, 5, 6, 7, 9), channels=8)),
        "kb": uniform(x=(128, 32, 16, 16, 16), add_input=(128, 64, 32, 32, 32))
        + conv_transpose(Size((128, 32, 16, 16, 16), channels=64)),
        "kb_v0": normal(x=(128, 32, 16, 16, 16), add_input=(128, 64, 32, 32, 32))
        + conv_transpose(Size((128, 32, 16, 16, 16), channels=64)),
    },
    notes=("The benchmark's model also holds a bias that its forward never reads.",),
)

MISH_TANH = chain(
    "2_047",
    "Conv3d_Mish_Tanh",
    mish_tanh,
    sizes(
        conv,
        cpu=Size((2, 6, 9, 17, 18), channels=12),
        kb=Size((16, 32, 32, 64, 64), channels=64),
        kb_v0=Size((16, 3, 16, 32, 32), channels=16),
    ),
)

SCALE_TANH_MULTIPLY_SIGMOID = chain(
    "2_048",
    "Conv3d_Scaling_Tanh_Multiply_Sigmoid",
    scale_tanh_multiply_sigmoid,
    sizes(
        per_channel("scaling_factor", "bias"),
        conv,
        cpu=Size((3, 3, 9, 17, 18), channels=12),
        kb=Size((128, 3, 16, 64, 64), channels=16),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)

LEAKY_RELU_ADD_CLAMP_GELU = chain(
    "2_090",
    "Conv3d_LeakyReLU_Sum_Clamp_GELU",
    leaky_relu_add_clamp_gelu,
    sizes(
        per_channel("sum_tensor"),
        conv,
        cpu=Size((3, 4, 9, 15, 18), channels=20),
        kb=Size((128, 8, 16, 64, 64), channels=64),
        kb_v0=Size((128, 3, 16, 32, 32), channels=16),
    ),
)

CLAMP_DIVIDE = chain(
    "2_100",
    "ConvTranspose3d_Clamp_Min_Divide",
    clamp_divide,
    sizes(
        conv_transpose,
        cpu=Size((2, 6, 6, 9, 10), channels=9),
        kb=Size((16, 64, 24, 48, 48), channels=128),
        kb_v0=Size((16, 32, 16, 32, 32), channels=16),
    ),
    notes=("At the benchmark's inputs no value comes near -1, so the clamp changes none.",),
)
