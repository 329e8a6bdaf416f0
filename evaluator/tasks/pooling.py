"""Max and average pooling over one to three dimensions, KernelBench level 1. Version 0 has windows of its own."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Task


def max_pool_1d(nn, x):
    return nn.max_pool1d(x, 8, stride=1, padding=4, dilation=3)


def max_pool_1d_v0(nn, x):
    return nn.max_pool1d(x, 4, stride=2, padding=2, dilation=3)


def max_pool_2d(nn, x):
    return nn.max_pool2d(x, 4, stride=1, padding=1)


def max_pool_2d_v0(nn, x):
    return nn.max_pool2d(x, 2, stride=2, padding=1, dilation=3)


def max_pool_3d(nn, x):
    return nn.max_pool3d(x, 3, stride=2, padding=1, dilation=3)


def avg_pool_1d(nn, x):
    return nn.avg_pool1d(x, 8, stride=1, padding=4)


def avg_pool_1d_v0(nn, x):
    return nn.avg_pool1d(x, 4, stride=2, padding=1)


def avg_pool_2d(nn, x):
    return nn.avg_pool2d(x, 11)


def avg_pool_2d_v0(nn, x):
    return nn.avg_pool2d(x, 3)


def avg_pool_3d(nn, x):
    return nn.avg_pool3d(x, 3, stride=2, padding=1)


MAX_1D = Task(
    id="1_041",
    name="Max_Pooling_1D",
    family="pooling",
    source=forward_text(max_pool_1d),
    sizes={
        "cpu": uniform(x=(6, 20, 3001)),
        "kb": uniform(x=(64, 192, 65536)),
        "kb_v0": normal(x=(16, 64, 128)),
    },
    sources_at={"kb_v0": forward_text(max_pool_1d_v0)},
)

MAX_2D = Task(
    id="1_042",
    name="Max_Pooling_2D",
    family="pooling",
    source=forward_text(max_pool_2d),
    sizes={
        "cpu": uniform(x=(5, 8, 61, 70)),
        "kb": uniform(x=(32, 64, 512, 512)),
        "kb_v0": normal(x=(16, 32, 128, 128)),
    },
    sources_at={"kb_v0": forward_text(max_pool_2d_v0)},
)

MAX_3D = Task(
    id="1_043",
    name="Max_Pooling_3D",
    family="pooling",
    source=forward_text(max_pool_3d),
    sizes={
        "cpu": uniform(x=(3, 8, 30, 33, 36)),
        "kb": uniform(x=(16, 32, 128, 128, 128)),
        "kb_v0": normal(x=(16, 32, 64, 64, 64)),
    },
)

AVG_1D = Task(
    id="1_044",
    name="Average_Pooling_1D",
    family="pooling",
    source=forward_text(avg_pool_1d),
    sizes={
        "cpu": uniform(x=(6, 20, 3001)),
        "kb": uniform(x=(64, 128, 65536)),
        "kb_v0": normal(x=(16, 32, 128)),
    },
    sources_at={"kb_v0": forward_text(avg_pool_1d_v0)},
)

AVG_2D = Task(
    id="1_045",
    name="Average_Pooling_2D",
    family="pooling",
    source=forward_text(avg_pool_2d),
    sizes={
        "cpu": uniform(x=(5, 8, 190, 205)),
        "kb": uniform(x=(16, 64, 2048, 2048)),
        "kb_v0": normal(x=(16, 64, 256, 256)),
    },
    sources_at={"kb_v0": forward_text(avg_pool_2d_v0)},
)

AVG_3D = Task(
    id="1_046",
    name="Average_Pooling_3D",
    family="pooling",
    source=forward_text(avg_pool_3d),
    sizes={
        "cpu": uniform(x=(3, 8, 30, 33, 36)),
        "kb": uniform(x=(16, 32, 128, 128, 256)),
        "kb_v0": normal(x=(16, 32, 64, 64, 64)),
    },
)
