"""Losses of KernelBench level 1: one number from two arrays."""

from evaluator.tasks.notation import forward_text, normal
from evaluator.tasks.task import Array, Task


def mse_loss(nn, predictions, targets):
    return nn.mean((predictions - targets) ** 2)


def huber_loss(nn, predictions, targets):
    return nn.smooth_l1_loss(predictions, targets)


def predictions_and_targets(shape: tuple[int, int]) -> tuple[Array, Array]:
    """The benchmark scales its predictions by one number drawn for the whole array."""
    return Array("predictions", shape, init="uniform(0,1)*scalar:uniform(0,1)"), Array("targets", shape)


PAIRS = {
    "cpu": predictions_and_targets((600, 1000)),
    "kb": predictions_and_targets((32768, 32768)),
    "kb_v0": normal(predictions=(128, 4096), targets=(128, 4096)),
}

MSE_LOSS = Task(id="1_094", name="MSELoss", family="loss", source=forward_text(mse_loss), sizes=PAIRS)
HUBER_LOSS = Task(id="1_096", name="HuberLoss", family="loss", source=forward_text(huber_loss), sizes=PAIRS)
