"""Softmax and norms of KernelBench level 1: every output needs a statistic of its row."""

from evaluator.tasks.notation import forward_text, normal, parameter, uniform
from evaluator.tasks.task import Array, Task


def softmax(nn, x):
    return nn.softmax(x, dim=1)


def log_softmax(nn, x):
    return nn.log_softmax(x, dim=1)


def rms_norm(nn, x):
    rms = nn.sqrt(nn.mean(x**2, dim=1, keepdim=True) + 1e-5)
    return x / rms


def frobenius_norm(nn, x):
    return x / nn.norm(x)


def l1_norm(nn, x):
    return x / nn.mean(nn.abs(x), dim=1, keepdim=True)


def l1_norm_by_sum(nn, x):
    return x / nn.sum(nn.abs(x), dim=1, keepdim=True)


def l2_norm(nn, x):
    return x / nn.norm(x, p=2, dim=1, keepdim=True)


def layer_norm(nn, x, ln_weight, ln_bias):
    return nn.layer_norm(x, ln_weight.shape, ln_weight, ln_bias, eps=1e-5)


def affine(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Weight and bias of a layer norm, as PyTorch initialises them."""
    return parameter("ln.weight", shape, "constant(1)"), parameter("ln.bias", shape, "constant(0)")


ROWS = {
    "cpu": uniform(x=(50, 5000)),
    "kb": uniform(x=(4096, 393216)),
    "kb_v0": normal(x=(16, 16384)),
}
NORM_ROWS = {
    "cpu": uniform(x=(70, 5001)),
    "kb": uniform(x=(32768, 65535)),
    "kb_v0": normal(x=(16, 16384)),
}
IMAGES = {
    "cpu": uniform(x=(9, 64, 50, 60)),
    "kb": uniform(x=(112, 64, 512, 512)),
    "kb_v0": normal(x=(16, 64, 256, 256)),
}

SOFTMAX = Task(
    id="1_023",
    name="Softmax",
    family="rowwise",
    source=forward_text(softmax),
    sizes=ROWS,
    degenerate="at kb a row has 393,216 entries, so every output is about 2.5e-6 and zeros pass a tolerance of 1e-4",
    degenerate_sizes=("kb",),
)
LOG_SOFTMAX = Task(id="1_024", name="LogSoftmax", family="rowwise", source=forward_text(log_softmax), sizes=ROWS)
RMS_NORM = Task(id="1_036", name="RMSNorm", family="rowwise", source=forward_text(rms_norm), sizes=IMAGES)
FROBENIUS_NORM = Task(
    id="1_037",
    name="FrobeniusNorm",
    family="rowwise",
    source=forward_text(frobenius_norm),
    sizes=IMAGES,
    degenerate="at kb the norm is about 2.5e4, so every output is at most 4e-5 and zeros pass a tolerance of 1e-4",
    degenerate_sizes=("kb",),
)
L1_NORM = Task(
    id="1_038",
    name="L1Norm",
    family="rowwise",
    source=forward_text(l1_norm),
    sizes=NORM_ROWS,
    sources_at={"kb_v0": forward_text(l1_norm_by_sum)},
    notes=("At kb_v0 the reference divides by the sum of the absolute values, at the other sizes by their mean.",),
)
L2_NORM = Task(id="1_039", name="L2Norm", family="rowwise", source=forward_text(l2_norm), sizes=NORM_ROWS)
LAYER_NORM = Task(
    id="1_040",
    name="LayerNorm",
    family="rowwise",
    source=forward_text(layer_norm),
    sizes={
        "cpu": uniform(x=(7, 16, 90, 66)) + affine((16, 90, 66)),
        "kb": uniform(x=(16, 64, 256, 256)) + affine((64, 256, 256)),
        "kb_v0": normal(x=(16, 64, 256, 256)) + affine((64, 256, 256)),
    },
)
