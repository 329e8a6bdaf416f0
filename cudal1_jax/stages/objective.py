"""What stage 3 minimises, by the names of its config: a loss, and how rewards become advantages.

`learn.loss` names a method of the literature and with it an advantage, an aggregation and a clip; each of these can be
set apart from it (docs/learner.md has the formulas).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from cudal1_jax.learn import advantage, losses, objectives
from cudal1_jax.learn.losses import KL, Aggregate
from cudal1_jax.learn.step import Objective
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.report.run_directory import RunError

PPO, REINFORCE = "ppo", "reinforce"
ADVANTAGES = ("normalised", "centred", "leave_one_out", "reward")
AGGREGATES = ("token", "sequence", "constant")

Advantage = Callable[[jax.Array], jax.Array]  # rewards [N, G] -> advantages [N, G]


@dataclasses.dataclass(frozen=True)
class Method:
    """What the paper of a loss has where the config leaves it open.

    But none has rewards as they are: most are below 0 here, and a critic that has seen nothing, or none at all, then
    pushes down whatever was written. PPO on the rewards of four failures had a KL of 50 nats after one update.
    """

    advantage: str
    aggregate: str
    clip_low: float
    clip_high: float


METHODS = {
    "grpo": Method("normalised", "sequence", 0.2, 0.2),
    "dr_grpo": Method("centred", "constant", 0.2, 0.2),
    "dapo": Method("normalised", "token", 0.2, 0.28),
    "gspo": Method("normalised", "sequence", 3e-4, 4e-4),
    PPO: Method("centred", "token", 0.2, 0.2),
    REINFORCE: Method("leave_one_out", "constant", 0.0, 0.0),
}


def build(config: ConfigDict, decoder: DecoderConfig) -> Objective:
    """The objective of `learn.loss`. RunError: there is none of that name, or none of one of its parts."""
    name, learn = config.learn.loss, config.learn
    if name == REINFORCE:
        return reinforce(config, decoder)
    common = _common(config) | {
        "clip_low": learn.clip_low or method(config).clip_low,
        "clip_high": learn.clip_high or method(config).clip_high,
        "kl": kl(config),
        "kl_weight": learn.kl_weight,
        "importance_cap": learn.importance_cap or None,
        "entropy_weight": learn.entropy_weight,
    }
    if name == PPO:
        return objectives.ppo(decoder, **common, **learn.ppo)
    ratio = losses.sequence_log_ratio if name == "gspo" else losses.token_log_ratio
    return objectives.grpo(decoder, **common, ratio=ratio)


def reinforce(config: ConfigDict, decoder: DecoderConfig) -> Objective:
    """REINFORCE, which stage 2 minimises whatever `learn.loss` is."""
    return objectives.reinforce(decoder, **_common(config))


def _common(config: ConfigDict) -> dict[str, Any]:
    """Arguments of every objective."""
    return {
        "aggregate": aggregate(config),
        "temperature": config.rollout.temperature,
        "compute_dtype": jnp.dtype(config.policy.update_dtype),
        "remat": config.learn.remat,
        "full": config.learn.full,
    }


def method(config: ConfigDict) -> Method:
    """What `learn.loss` stands for. RunError: there is none of that name."""
    if config.learn.loss not in METHODS:
        raise RunError(f"config.learn.loss: {config.learn.loss!r} is none of {', '.join(METHODS)}")
    return METHODS[config.learn.loss]


def advantage_of(config: ConfigDict) -> Advantage:
    """How the rewards of groups become advantages. RunError: there is no such way."""
    name = config.learn.advantage or method(config).advantage
    if name == "normalised":
        return advantage.group_normalised
    if name == "centred":
        return advantage.group_centred
    if name == "leave_one_out":
        return advantage.leave_one_out
    if name == "reward":
        return as_they_are
    raise RunError(f"config.learn.advantage: {name!r} is none of {', '.join(ADVANTAGES)}")


def as_they_are(rewards: jax.Array) -> jax.Array:
    """Rewards as advantages: no baseline."""
    return rewards


def aggregate(config: ConfigDict) -> Aggregate:
    """How a loss is averaged over tokens and samples. RunError: there is no such way."""
    name = config.learn.aggregate or method(config).aggregate
    if name == "token":
        return losses.token_mean
    if name == "sequence":
        return losses.sequence_mean
    if name == "constant":
        return losses.constant_length_mean(config.rollout.completion_tokens)
    raise RunError(f"config.learn.aggregate: {name!r} is none of {', '.join(AGGREGATES)}")


def kl(config: ConfigDict) -> KL:
    """The estimator of the KL penalty. RunError: there is none of that name."""
    name = config.learn.kl
    if name == "k1":
        return losses.kl_k1
    if name == "k2":
        return losses.kl_k2
    if name == "k3":
        return losses.kl_k3
    raise RunError(f"config.learn.kl: {name!r} is none of k1, k2, k3")
