"""Every kind of workload the corpus draws from, with its share."""

from collections.abc import Callable
from random import Random

from cudal1_jax.corpus import (
    argreduce,
    elementwise,
    product,
    product_fold,
    reduction,
    rowwise,
    scan,
    total,
    vector_product,
)
from cudal1_jax.corpus.workload import Workload

Draw = Callable[[Random, tuple[int, int]], Workload]

SOURCES: tuple[tuple[str, Draw, int], ...] = (  # name, generator, share in percent
    ("elementwise", elementwise.draw, 18),
    ("rowwise", rowwise.draw, 15),
    ("affine", rowwise.draw_affine, 5),
    ("reduction", reduction.draw, 15),
    ("argreduce", argreduce.draw, 5),
    ("scan", scan.draw, 14),
    ("product", product.draw, 12),
    ("vector_product", vector_product.draw, 4),
    ("product_fold", product_fold.draw, 5),
    ("total", total.draw, 7),
)


def draw(rng: Random, elements: tuple[int, int]) -> Workload:
    """A workload of a random family, with a number of elements in the given range."""
    generator = rng.choices(SOURCES, [source[2] for source in SOURCES])[0][1]
    return generator(rng, elements)
