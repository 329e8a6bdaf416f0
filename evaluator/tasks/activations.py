"""Element-wise activations of KernelBench level 1."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Task

UNARY = {
    "cpu": uniform(x=(100, 16400)),
    "kb": uniform(x=(4096, 393216)),
    "kb_v0": normal(x=(16, 16384)),
}
HEAVY = {**UNARY, "cpu": uniform(x=(100, 8200))}  # for functions that cost a CPU ten times as much as a comparison


def relu(nn, x):
    return nn.relu(x)


def leaky_relu(nn, x):
    return nn.leaky_relu(x, negative_slope=0.01)


def sigmoid(nn, x):
    return nn.sigmoid(x)


def tanh(nn, x):
    return nn.tanh(x)


def swish(nn, x):
    return x * nn.sigmoid(x)


def gelu(nn, x):
    return nn.gelu(x)


def selu(nn, x):
    return nn.selu(x)


def hardsigmoid(nn, x):
    return nn.hardsigmoid(x)


def softplus(nn, x):
    return nn.softplus(x)


def softsign(nn, x):
    return x / (1 + nn.abs(x))


def elu(nn, x):
    return nn.elu(x, alpha=1.0)


def hardtanh(nn, x):
    return nn.hardtanh(x, min_val=-1.0, max_val=1.0)


def new_gelu(nn, x):
    return 0.5 * x * (1.0 + nn.tanh(0.79788456 * (x + 0.044715 * x**3.0)))


RELU = Task(id="1_019", name="ReLU", family="elementwise", source=forward_text(relu), sizes=UNARY)
LEAKY_RELU = Task(id="1_020", name="LeakyReLU", family="elementwise", source=forward_text(leaky_relu), sizes=UNARY)
SIGMOID = Task(id="1_021", name="Sigmoid", family="elementwise", source=forward_text(sigmoid), sizes=HEAVY)
TANH = Task(id="1_022", name="Tanh", family="elementwise", source=forward_text(tanh), sizes=HEAVY)
SWISH = Task(id="1_025", name="Swish", family="elementwise", source=forward_text(swish), sizes=HEAVY)
GELU = Task(id="1_026", name="GELU", family="elementwise", source=forward_text(gelu), sizes=HEAVY)
SELU = Task(id="1_027", name="SELU", family="elementwise", source=forward_text(selu), sizes=UNARY)
HARD_SIGMOID = Task(id="1_028", name="HardSigmoid", family="elementwise", source=forward_text(hardsigmoid), sizes=UNARY)
SOFTPLUS = Task(id="1_029", name="Softplus", family="elementwise", source=forward_text(softplus), sizes=HEAVY)
SOFTSIGN = Task(id="1_030", name="Softsign", family="elementwise", source=forward_text(softsign), sizes=UNARY)
ELU = Task(id="1_031", name="ELU", family="elementwise", source=forward_text(elu), sizes=UNARY)
HARD_TANH = Task(id="1_032", name="HardTanh", family="elementwise", source=forward_text(hardtanh), sizes=UNARY)
NEW_GELU = Task(
    id="1_088",
    name="MinGPTNewGelu",
    family="elementwise",
    source=forward_text(new_gelu),
    sizes={
        "cpu": uniform(x=(600, 820)),
        "kb": uniform(x=(8192, 8192)),
        "kb_v0": normal(x=(2000, 2000)),
    },
)
