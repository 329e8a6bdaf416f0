"""Losses of KernelBench level 1: one number from two arrays."""

from evaluator.tasks.notation import forward_text, normal
from evaluator.tasks.task import Array, Task


def mse_loss(nn, predictions, targets):
    return nn.mean((predictions - targets) ** 2)


def huber_loss(nn, predictions, targets):
    return nn.smooth_l1_loss(predictions, targets)


def triplet_margin_loss(nn, anchor, positive, negative):
    return nn.triplet_margin_loss(anchor, positive, negative, margin=1.0)


def predictions_and_targets(shape: tuple[int, int]) -> tuple[Array, Array]:
    """The benchmark scales its predictions by one number drawn for the whole array."""
    return Array("predictions", shape, init="uniform(0,1)*scalar:uniform(0,1)"), Array("targets", shape)


def triplets(shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """As above, the anchor alone is scaled by one number drawn for the whole array."""
    scaled = Array("anchor", shape, init="uniform(0,1)*scalar:uniform(0,1)")
    return scaled, Array("positive", shape), Array("negative", shape)


PAIRS = {
    "cpu": predictions_and_targets((600, 1000)),
    "kb": predictions_and_targets((32768, 32768)),
    "kb_v0": normal(predictions=(128, 4096), targets=(128, 4096)),
}

MSE_LOSS = Task(id="1_094", name="MSELoss", family="loss", source=forward_text(mse_loss), sizes=PAIRS)
HUBER_LOSS = Task(id="1_096", name="HuberLoss", family="loss", source=forward_text(huber_loss), sizes=PAIRS)

TRIPLET_MARGIN_LOSS = Task(
    id="1_099",
    name="TripletMarginLoss",
    family="loss",
    source=forward_text(triplet_margin_loss),
    sizes={
        "cpu": triplets((300, 1001)),
        "kb": triplets((32768, 8192)),
        "kb_v0": normal(anchor=(128, 4096), positive=(128, 4096), negative=(128, 4096)),
    },
)
