"""Reductions over one dimension, KernelBench level 1."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Task


def sum(nn, x):
    return nn.sum(x, dim=1, keepdim=True)


def mean(nn, x):
    return nn.mean(x, dim=1)


def max(nn, x):
    return nn.amax(x, dim=1)


def min(nn, x):
    return nn.amin(x, dim=1)


def argmax(nn, x):
    return nn.argmax(x, dim=1)


def argmin(nn, x):
    return nn.argmin(x, dim=1)


MIDDLE = {
    "cpu": uniform(x=(16, 600, 415)),
    "kb": uniform(x=(128, 4096, 4095)),
    "kb_v0": normal(x=(16, 256, 256)),
}

SUM = Task(
    id="1_047", name="Sum_reduction_over_a_dimension", family="reduction", source=forward_text(sum), sizes=MIDDLE
)
MEAN = Task(
    id="1_048", name="Mean_reduction_over_a_dimension", family="reduction", source=forward_text(mean), sizes=MIDDLE
)
MAX = Task(
    id="1_049", name="Max_reduction_over_a_dimension", family="reduction", source=forward_text(max), sizes=MIDDLE
)
ARGMAX = Task(id="1_051", name="Argmax_over_a_dimension", family="reduction", source=forward_text(argmax), sizes=MIDDLE)
ARGMIN = Task(id="1_052", name="Argmin_over_a_dimension", family="reduction", source=forward_text(argmin), sizes=MIDDLE)
MIN = Task(
    id="1_053", name="Min_reduction_over_a_dimension", family="reduction", source=forward_text(min), sizes=MIDDLE
)
