"""The best values of a training run so far, by held-out loss, and when to stop looking for better ones."""

import dataclasses
from typing import Any, Self

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Best:
    """A pytree, so that a checkpoint holds it."""

    loss: jax.Array  # scalar float32, the lowest held-out loss
    trainable: Any  # the values that had it; copies, since an update uses up the state it is given
    evaluations_since: jax.Array  # scalar int32, evaluations since then that were no better

    def after(self, loss: float, trainable: Any) -> Self:
        """The record after one more evaluation. A loss that is not a number is never the best."""
        if loss < float(self.loss):
            copy = jax.tree.map(jnp.array, trainable)
            return dataclasses.replace(self, loss=jnp.float32(loss), trainable=copy, evaluations_since=jnp.int32(0))
        return dataclasses.replace(self, evaluations_since=self.evaluations_since + 1)


def nothing_yet(trainable: Any) -> Best:
    """Before the first evaluation."""
    return Best(jnp.float32(jnp.inf), jax.tree.map(jnp.array, trainable), jnp.int32(0))
