"""Chains of a linear layer and functions of single elements, KernelBench level 2."""

from evaluator.tasks.linear_chain import linear_chain, per_output, single


def matmul_subtract_multiply_relu(nn, x, linear_weight, linear_bias):
    x = nn.linear(x, linear_weight, linear_bias)
    return nn.relu((x - 2.0) * 1.5)


def matmul_mish_mish(nn, x, linear_weight, linear_bias):
    x = nn.linear(x, linear_weight, linear_bias)
    return nn.mish(nn.mish(x))


def matmul_scaling_residual(nn, x, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    return x * 0.5 + x


def gemm_scaling_hardtanh_gelu(nn, x, gemm_weight, gemm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    return nn.gelu(nn.hardtanh(x * 0.5, min_val=-2, max_val=2))


def matmul_swish_scaling(nn, x, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias)
    return x * nn.sigmoid(x) * 2.0


def matmul_min_subtract(nn, x, constant, linear_weight, linear_bias):
    x = nn.linear(x, linear_weight, linear_bias)
    return nn.minimum(x, constant) - constant


def gemm_sigmoid_scaling_residual(nn, x, gemm_weight, gemm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    return nn.sigmoid(x) * 2.0 + x


def gemm_swish_divide_clamp_tanh_clamp(nn, x, gemm_weight, gemm_bias):
    x = nn.linear(x, gemm_weight, gemm_bias)
    x = nn.clamp(x * nn.sigmoid(x) / 2.0, min=-1.0, max=1.0)
    return nn.clamp(nn.tanh(x), min=-1.0, max=1.0)


def matmul_add_swish_tanh_gelu_hardtanh(nn, x, add_value, matmul_weight, matmul_bias):
    x = nn.linear(x, matmul_weight, matmul_bias) + add_value
    x = nn.tanh(nn.sigmoid(x) * x)
    return nn.hardtanh(nn.gelu(x), min_val=-1, max_val=1)


IDLE_CLAMP = "on the task's own draws the clamp changes nothing"

MATMUL_SUBTRACT_MULTIPLY_RELU = linear_chain(
    "2_009",
    "Matmul_Subtract_Multiply_ReLU",
    matmul_subtract_multiply_relu,
    "linear",
    (128, 10, 5),
    degenerate="on the task's own draws the layer stays below 2, which is subtracted before relu: all zeros",
)
MATMUL_MISH_MISH = linear_chain("2_029", "Matmul_Mish_Mish", matmul_mish_mish, "linear", (128, 10, 20))
MATMUL_SCALING_RESIDUAL = linear_chain(
    "2_040",
    "Matmul_Scaling_ResidualAdd",
    matmul_scaling_residual,
    "matmul",
    (128, 64, 128),
    kb=(16384, 4096, 4096),
    notes=("the result is 1.5 times the layer's",),
)
GEMM_SCALING_HARDTANH_GELU = linear_chain(
    "2_053",
    "Gemm_Scaling_Hardtanh_GELU",
    gemm_scaling_hardtanh_gelu,
    "gemm",
    (128, 1024, 512),
    kb=(2048, 8192, 8192),
    notes=(IDLE_CLAMP,),
)
MATMUL_SWISH_SCALING = linear_chain(
    "2_059", "Matmul_Swish_Scaling", matmul_swish_scaling, "matmul", (128, 1024, 512), kb=(128, 32768, 32768)
)
MATMUL_MIN_SUBTRACT = linear_chain(
    "2_068",
    "Matmul_Min_Subtract",
    matmul_min_subtract,
    "linear",
    (128, 10, 5),
    kb=(128, 16384, 16384),
    own=single("constant", "constant(2)", shape=()),
    notes=("on the task's own draws the minimum is hardly ever the constant",),
)
GEMM_SIGMOID_SCALING_RESIDUAL = linear_chain(
    "2_070", "Gemm_Sigmoid_Scaling_ResidualAdd", gemm_sigmoid_scaling_residual, "gemm", (128, 1024, 512)
)
GEMM_SWISH_DIVIDE_CLAMP_TANH_CLAMP = linear_chain(
    "2_081",
    "Gemm_Swish_Divide_Clamp_Tanh_Clamp",
    gemm_swish_divide_clamp_tanh_clamp,
    "gemm",
    (128, 1024, 512),
    notes=("the second clamp changes nothing, nor does the first on the task's own draws",),
)
MATMUL_ADD_SWISH_TANH_GELU_HARDTANH = linear_chain(
    "2_095",
    "Matmul_Add_Swish_Tanh_GELU_Hardtanh",
    matmul_add_swish_tanh_gelu_hardtanh,
    "matmul",
    (128, 1024, 512),
    own=per_output("add_value"),
    notes=("gelu of a tanh lies within the limits of hardtanh",),
)
