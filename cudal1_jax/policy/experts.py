"""A mixture of experts: which experts a token goes to, and their gated MLPs, without dropping a token.

Shapes are static in two ways, and the platform decides. On accelerators tokens are sorted by expert and multiplied
group by group (`jax.lax.ragged_dot`). XLA's CPU backend has no such product and would multiply each of the M x active
rows by all E experts; there, every expert takes all M tokens in turn, which is `active` times less.
"""

import jax
import jax.numpy as jnp

from cudal1_jax.policy.config import Experts
from cudal1_jax.policy.parameters import Params


def mixed(experts: Experts, weights: Params, x: jax.Array) -> jax.Array:
    """What the active experts, and the shared one, add for tokens x [..., D]."""
    tokens = x.reshape(-1, x.shape[-1])  # [M, D]
    chosen, share = route(experts, weights, tokens)
    routed = {name: weights[name] for name in ("expert_gate", "expert_up", "expert_down")}
    out = jax.lax.platform_dependent(routed, tokens, chosen, share, cpu=one_by_one, default=grouped)
    if experts.shared_width:
        inner = jax.nn.silu(tokens @ weights["shared_gate"]) * (tokens @ weights["shared_up"])
        out = out + inner @ weights["shared_down"]
    return out.reshape(x.shape)


def route(experts: Experts, weights: Params, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The experts [M, active] of tokens [M, D] and their weights [M, active], float32.

    The correction bias moves the choice and not the weights, so it has no gradient.
    """
    logits = jnp.matmul(tokens, weights["router"], preferred_element_type=jnp.float32)
    if experts.gate == "softmax":
        scores = preference = jax.nn.softmax(logits, axis=-1)
    else:
        scores = jax.nn.sigmoid(logits)
        bias = weights["router_bias"].astype(jnp.float32)
        preference = _best_groups(experts, scores + jnp.broadcast_to(bias, scores.shape))
    chosen = jax.lax.top_k(preference, experts.active)[1]
    share = jnp.take_along_axis(scores, chosen, axis=-1)
    if experts.normalised:
        share = share / jnp.sum(share, axis=-1, keepdims=True)
    return chosen, share * experts.scale


def _best_groups(experts: Experts, preference: jax.Array) -> jax.Array:
    """Preferences [M, E], minus infinity outside the best groups; a group is as good as its two best experts are."""
    M, E = preference.shape
    grouped = preference.reshape(M, experts.groups, -1)
    worth = jnp.sum(jax.lax.top_k(grouped, 2)[0], axis=-1)
    best = jax.lax.top_k(worth, experts.active_groups)[1]  # [M, active groups]
    within = jnp.any(jax.nn.one_hot(best, experts.groups, dtype=jnp.bool_), axis=1)
    return jnp.where(jnp.broadcast_to(within[..., None], grouped.shape), grouped, -jnp.inf).reshape(M, E)


def one_by_one(weights: Params, tokens: jax.Array, chosen: jax.Array, share: jax.Array) -> jax.Array:
    """What the chosen experts give for tokens [M, D], each expert run over all of them."""
    E = weights["expert_gate"].shape[0]
    of_expert = jnp.einsum("mae,ma->em", jax.nn.one_hot(chosen, E, dtype=share.dtype), share).astype(tokens.dtype)

    def add(out: jax.Array, xs: tuple[Params, jax.Array]) -> tuple[jax.Array, None]:
        w, weight = xs
        inner = jax.nn.silu(tokens @ w["expert_gate"]) * (tokens @ w["expert_up"])
        return out + jnp.einsum("md,m->md", inner @ w["expert_down"], weight), None

    return jax.lax.scan(jax.checkpoint(add), jnp.zeros_like(tokens), (weights, of_expert))[0]


def grouped(weights: Params, tokens: jax.Array, chosen: jax.Array, share: jax.Array) -> jax.Array:
    """The same with tokens sorted by expert."""
    M, active = chosen.shape
    E = weights["expert_gate"].shape[0]
    order = jnp.argsort(chosen.reshape(-1), stable=True)  # [M active], by expert
    sizes = jnp.bincount(chosen.reshape(-1), length=E).astype(jnp.int32)
    sorted_tokens = tokens[order // active]
    gate = jax.lax.ragged_dot(sorted_tokens, weights["expert_gate"], sizes)
    up = jax.lax.ragged_dot(sorted_tokens, weights["expert_up"], sizes)
    out = jax.lax.ragged_dot(jax.nn.silu(gate) * up, weights["expert_down"], sizes)
    back = out[jnp.argsort(order)].reshape(M, active, -1)
    return jnp.einsum("mad,ma->md", back, share.astype(back.dtype))
