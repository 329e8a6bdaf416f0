"""Losses of KernelBench level 1: one number from two arrays."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Array, Task


def mse_loss(nn, predictions, targets):
    return nn.mean((predictions - targets) ** 2)


def huber_loss(nn, predictions, targets):
    return nn.smooth_l1_loss(predictions, targets)


def triplet_margin_loss(nn, anchor, positive, negative):
    return nn.triplet_margin_loss(anchor, positive, negative, margin=1.0)


def cross_entropy_loss(nn, predictions, targets):
    return nn.cross_entropy(predictions, targets)


def kl_divergence(nn, predictions, targets):
    return nn.kl_div(nn.log(predictions), targets, reduction="batchmean")


def hinge_loss(nn, predictions, targets):
    return nn.mean(nn.clamp(1 - predictions * targets, min=0))


def predictions_and_targets(shape: tuple[int, int]) -> tuple[Array, Array]:
    """The benchmark scales its predictions by one number drawn for the whole array."""
    return Array("predictions", shape, init="uniform(0,1)*scalar:uniform(0,1)"), Array("targets", shape)


def triplets(shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """As above, the anchor alone is scaled by one number drawn for the whole array."""
    scaled = Array("anchor", shape, init="uniform(0,1)*scalar:uniform(0,1)")
    return scaled, Array("positive", shape), Array("negative", shape)


def logits_and_classes(drawn: tuple[Array, ...]) -> tuple[Array, Array]:
    """Logits [B, C], and a class for each of their rows."""
    (logits,) = drawn
    rows, classes = logits.shape
    return logits, Array("targets", (rows,), dtype="int64", init=f"integers(0,{classes})")


def probabilities(shape: tuple[int, int], p: str, q: str) -> tuple[Array, Array]:
    """Rows that add up to 1: softmax of draws."""
    return Array("predictions", shape, init=f"softmax({p})"), Array("targets", shape, init=f"softmax({q})")


def labelled(predictions: tuple[Array, ...], labels: tuple[int, ...]) -> tuple[Array, ...]:
    """Predictions, and labels 1 and -1 that broadcast over them."""
    return (*predictions, Array("targets", labels, init="sign(uniform(-1,1))"))


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

CROSS_ENTROPY_LOSS = Task(
    id="1_095",
    name="CrossEntropyLoss",
    family="loss",
    source=forward_text(cross_entropy_loss),
    sizes={
        "cpu": logits_and_classes(uniform(predictions=(700, 300))),
        "kb": logits_and_classes(uniform(predictions=(32768, 4096))),
        "kb_v0": logits_and_classes(normal(predictions=(4096, 10))),
    },
)

KL_DIVERGENCE = Task(
    id="1_098",
    name="KLDivLoss",
    family="loss",
    source=forward_text(kl_divergence),
    sizes={
        "cpu": probabilities((400, 1000), "uniform(0,1)*scalar:uniform(0,1)", "uniform(0,1)"),
        "kb": probabilities((16384, 16384), "uniform(0,1)*scalar:uniform(0,1)", "uniform(0,1)"),
        "kb_v0": probabilities((128, 4096), "normal(0,1)", "normal(0,1)"),
    },
    # Draws far apart would give predictions of 0, whose logarithm is infinite.
    cases=("negated", "one_changed", "structured", "permuted", "small", "centred"),
)

HINGE_LOSS = Task(
    id="1_100",
    name="HingeLoss",
    family="loss",
    source=forward_text(hinge_loss),
    sizes={
        "cpu": labelled(uniform(predictions=(600, 1000)), (1000,)),
        "kb": labelled(uniform(predictions=(32768, 32768)), (32768,)),
        "kb_v0": labelled(normal(predictions=(128, 1)), (128, 1)),
    },
    notes=(
        "Labels belong to columns, except at kb_v0, where the one column has a label for each row.",
        "On uniform draws the limit at 0 never applies: the result is 1 less a mean of products, close to 1.",
    ),
)
