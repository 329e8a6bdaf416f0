"""The optimizer of every stage: AdamW under a warm-up and a schedule, after a clip by global norm."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax


def schedule(
    *, peak: float, warmup_steps: int, total_steps: int, decay: Literal["constant", "cosine"], end_fraction: float = 0.1
) -> optax.Schedule:
    """Learning rate over steps: linear from 0 to `peak` in `warmup_steps`, then constant or a cosine.

    The cosine ends at `end_fraction * peak` at `total_steps` and stays there. Step 0 already moves: its rate is
    peak / (warmup_steps + 1), since a first step at rate 0 would only be wasted.
    Raises ValueError where the warm-up does not fit into the run or a name is unknown.
    """
    if not 0 <= warmup_steps < total_steps:
        raise ValueError(f"warm-up must be shorter than the run: saw {warmup_steps} of {total_steps} steps")
    if decay == "constant":
        after = optax.constant_schedule(peak)
    elif decay == "cosine":
        after = optax.cosine_decay_schedule(peak, total_steps - warmup_steps, alpha=end_fraction)
    else:
        raise ValueError(f"learning-rate decay must be 'constant' or 'cosine', saw {decay!r}")
    if warmup_steps == 0:
        return after
    warmup = optax.linear_schedule(peak / (warmup_steps + 1), peak, warmup_steps)
    return optax.join_schedules([warmup, after], [warmup_steps])


def build(
    learning_rate: optax.ScalarOrSchedule,
    *,
    clip_norm: float,
    b1: float = 0.9,
    b2: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    moment_dtype: jnp.dtype = jnp.float32,
) -> optax.GradientTransformation:
    """AdamW behind a clip by global norm; parameters are float32. `clip_norm` is in units of the mean loss.

    `moment_dtype`: what both moments are kept in between steps; they are computed in float32. bfloat16 halves their
    memory. It cannot hold a change of the second moment below 0.4 %, so with b2 = 0.99 that one may rest up to 40 %
    away from its mean, and a step may be 20 % too long or too short. ValueError: clip_norm is not positive.
    """
    if not clip_norm > 0:
        raise ValueError(f"clip_norm must be positive (use a large number to turn clipping off), saw {clip_norm}")
    adam = optax.adamw(learning_rate, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay)
    return optax.chain(
        optax.clip_by_global_norm(clip_norm), adam if moment_dtype == jnp.float32 else _kept_in(adam, moment_dtype)
    )


def _kept_in(transform: optax.GradientTransformation, dtype: jnp.dtype) -> optax.GradientTransformation:
    """The transform with the arrays of its state in `dtype` between steps; counts stay as they are."""

    def cast(tree: Any, to: jnp.dtype) -> Any:
        def one(leaf: Any) -> Any:
            is_moment = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)
            return leaf.astype(to) if is_moment else leaf

        return jax.tree.map(one, tree)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        updates, state = transform.update(updates, cast(state, jnp.float32), params)
        return updates, cast(state, dtype)

    return optax.GradientTransformation(lambda params: cast(transform.init(params), dtype), update)
