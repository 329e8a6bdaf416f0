"""Scans along rows, KernelBench level 1."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Array, Task


def cumsum(nn, x):
    return nn.cumsum(x, dim=1)


def cumprod(nn, x):
    return nn.cumprod(x, dim=1)


def exclusive_cumsum(nn, x):
    sums = nn.cumsum(x[:, :-1], dim=1)
    return nn.cat((nn.zeros_like(x[:, :1]), sums), dim=1)


def exclusive_cumsum_v0(nn, x):
    x = nn.cat((nn.zeros_like(x[:, :1]), x), dim=1)
    return nn.cumsum(x[:-1], dim=1)


def masked_cumsum(nn, x, mask):
    return nn.cumsum(x * mask, dim=1)


def reverse_cumsum(nn, x):
    return nn.flip(nn.cumsum(nn.flip(x, 1), dim=1), 1)


def masked(rows: tuple[Array, ...]) -> tuple[Array, ...]:
    """The rows, and which of their elements count: each with probability 1/2."""
    return (*rows, Array("mask", rows[0].shape, dtype="bool", init="integers(0,2)"))


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
EXCLUSIVE_CUMSUM = Task(
    id="1_092",
    name="cumsum_exclusive",
    family="scan",
    source=forward_text(exclusive_cumsum),
    sizes=ROWS,
    notes=("At kb_v0 the reference drops the last row, not the last column: 127 rows of 4,001 sums.",),
    sources_at={"kb_v0": forward_text(exclusive_cumsum_v0)},
)
MASKED_CUMSUM = Task(
    id="1_093",
    name="masked_cumsum",
    family="scan",
    source=forward_text(masked_cumsum),
    sizes={size: masked(rows) for size, rows in ROWS.items()},
)
