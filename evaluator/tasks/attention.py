"""Attention, KernelBench level 1. Version 0 has a cosine loss under the same number."""

from evaluator.tasks.notation import forward_text, normal, uniform
from evaluator.tasks.task import Task


def attention(nn, Q, K, V):
    return nn.scaled_dot_product_attention(Q, K, V)


def cosine_loss(nn, predictions, targets):
    return nn.mean(1 - nn.cosine_similarity(predictions, targets, dim=1))


SCALED_DOT_PRODUCT = Task(
    id="1_097",
    name="ScaledDotProductAttention",
    family="attention",
    source=forward_text(attention),
    sizes={
        "cpu": uniform(Q=(2, 3, 70, 50), K=(2, 3, 70, 50), V=(2, 3, 70, 50)),
        "kb": uniform(Q=(32, 32, 512, 1024), K=(32, 32, 512, 1024), V=(32, 32, 512, 1024)),
        "kb_v0": normal(predictions=(128, 4096), targets=(128, 4096)),
    },
    sources_at={"kb_v0": forward_text(cosine_loss)},
    notes=("At kb_v0 the task is another one: one minus the cosine similarity of two arrays, averaged.",),
)
