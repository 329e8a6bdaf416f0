"""Scans along rows, KernelBench level 1."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Task


def cumsum(nn, x):
    return nn.cumsum(x, dim=1)


def cumprod(nn, x):
    return nn.cumprod(x, dim=1)


def reverse_cumsum(nn, x):
    return nn.flip(nn.cumsum(nn.flip(x, 1), dim=1), 1)


ROWS = {
    "cpu": uniform(x=(400, 1000)),
    "kb": uniform(x=(32768, 32768)),
    "kb_v0": normal(x=(128, 4000)),
}

CUMSUM = Task(id="1_089", name="cumsum", family="scan", source=forward_text(cumsum), sizes=ROWS)
CUMPROD = Task(
    id="1_090",
    name="cumprod",
    family="scan",
    source=forward_text(cumprod),
    sizes=ROWS,
    degenerate="the product of numbers below 1 underflows to 0 after about 100 columns",
)
REVERSE_CUMSUM = Task(id="1_091", name="cumsum_reverse", family="scan", source=forward_text(reverse_cumsum), sizes=ROWS)
