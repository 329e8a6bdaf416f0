"""One optimizer step, exact whatever the micro-batches: gradients of sums are added, and divided once at the end.

A batch has two halves. `shared` is what several rows have in common (prompts), `rows` what each has of its own
(completions). The shared half is encoded once per slice; micro-batches of rows add up the gradients that reach the
encoding, and these go back through it once. So memory follows the micro-batch and time does not.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from cudal1_jax.learn.losses import Total

PyTree = Any
Metrics = dict[str, jax.Array]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """What training changes. The base model of a LoRA run is not in here: it is frozen and never donated."""

    trainable: PyTree  # adapter, or all parameters; float32 master values
    optimizer_state: PyTree
    step: jax.Array  # int32 scalar, updates made so far


class Objective(NamedTuple):
    """What is minimised, as two pure functions of the trained values, the frozen ones and a part of the batch."""

    encode: Callable[[PyTree, PyTree, PyTree], PyTree]  # (trainable, frozen, shared) -> floats that rows have in common
    loss: Callable[[PyTree, PyTree, PyTree, PyTree, PyTree], tuple[Total, dict[str, Total]]]
    # (trainable, frozen, encoding, shared, rows) -> the loss and further means to report


Update = Callable[[TrainState, PyTree, PyTree, PyTree], tuple[TrainState, Metrics]]


def init(trainable: PyTree, optimizer: optax.GradientTransformation) -> TrainState:
    """A state at step 0 that owns its arrays: the first update donates them, so none may be shared with the caller."""
    own = jax.tree.map(jnp.array, trainable)
    return TrainState(own, optimizer.init(own), jnp.zeros((), jnp.int32))


def make_update(
    objective: Objective, optimizer: optax.GradientTransformation, shardings: PyTree | None = None
) -> Update:
    """The jitted update(state, frozen, shared, rows) -> (state, metrics); build it once per configuration.

    Leaves of `shared` are [S, ...] and of `rows` [S, M, ...]: S slices of the batch, each with M micro-batches (see
    `split`). The state is donated: the one passed in is gone. Metrics: loss, grad_norm, update_norm, the objective's.
    Where the loss or the gradient is not finite, the state stays as it was, and the metrics say so.
    `shardings`, of the trained values, on a mesh: gradients are summed up divided in the same way.
    """

    def divide(gradients: PyTree) -> PyTree:
        return gradients if shardings is None else jax.lax.with_sharding_constraint(gradients, shardings)

    def update(state: TrainState, frozen: PyTree, shared: PyTree, rows: PyTree) -> tuple[TrainState, Metrics]:
        gradients, totals = accumulate(objective, state.trainable, frozen, shared, rows, divide)
        denominator = jnp.maximum(totals["loss"].denominator, 1e-8)  # a batch without tokens changes nothing
        gradients = jax.tree.map(lambda g: g / denominator, gradients)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer_state, state.trainable)
        trainable = optax.apply_updates(state.trainable, updates)
        metrics = means(totals)
        metrics["grad_norm"] = optax.tree.norm(gradients)
        metrics["update_norm"] = optax.tree.norm(updates)
        after = TrainState(trainable, optimizer_state, state.step + 1)
        finite = jnp.isfinite(metrics["loss"]) & jnp.isfinite(metrics["grad_norm"])
        return jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, state), metrics

    return jax.jit(update, donate_argnums=0)


def make_evaluation(objective: Objective) -> Callable[[PyTree, PyTree, PyTree, PyTree], dict[str, Total]]:
    """The jitted totals(trainable, frozen, shared, rows) of one unsplit batch, without gradients."""

    def evaluate(trainable: PyTree, frozen: PyTree, shared: PyTree, rows: PyTree) -> dict[str, Total]:
        loss, others = objective.loss(trainable, frozen, objective.encode(trainable, frozen, shared), shared, rows)
        return {"loss": loss, **others}

    return jax.jit(evaluate)


def accumulate(
    objective: Objective,
    trainable: PyTree,
    frozen: PyTree,
    shared: PyTree,
    rows: PyTree,
    divide: Callable[[PyTree], PyTree] = lambda gradients: gradients,
) -> tuple[PyTree, dict[str, Total]]:
    """Gradient of the sum of the loss by `trainable`, and all totals, over every slice and micro-batch."""

    def of_slice(one: tuple[PyTree, PyTree]) -> tuple[PyTree, dict[str, Total]]:
        one_shared, micro_batches = one
        encoding, backward = jax.vjp(lambda t: objective.encode(t, frozen, one_shared), trainable)

        def loss_sum(t: PyTree, e: PyTree, micro: PyTree) -> tuple[jax.Array, dict[str, Total]]:
            loss, others = objective.loss(t, frozen, e, one_shared, micro)
            return loss.sum, {"loss": loss, **others}

        gradient = jax.grad(loss_sum, argnums=(0, 1), has_aux=True)

        def of_micro(micro: PyTree) -> tuple[tuple[PyTree, PyTree], dict[str, Total]]:
            (direct, by_encoding), totals = gradient(trainable, encoding, micro)
            return (divide(direct), by_encoding), totals

        (direct, by_encoding), totals = _add_up(of_micro, micro_batches)
        (through_encoding,) = backward(by_encoding)
        return divide(jax.tree.map(jnp.add, direct, through_encoding)), totals

    return _add_up(of_slice, (shared, rows))


def _add_up(function: Callable[[PyTree], PyTree], stacked: PyTree) -> PyTree:
    """Sum of function(part) over the leading axis of all leaves, one part at a time."""
    first = jax.tree.map(lambda x: x[0], stacked)
    if jax.tree.leaves(stacked)[0].shape[0] == 1:
        return function(first)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, first))
    total, _ = jax.lax.scan(lambda sums, part: (jax.tree.map(jnp.add, sums, function(part)), None), zeros, stacked)
    return total


def split(shared: PyTree, rows: PyTree, *, slices: int, micro_batches: int) -> tuple[PyTree, PyTree]:
    """Host arrays of N prompts [N, ...] and N * G rows [N * G, ...], as `make_update` wants them.

    Each slice holds N / slices prompts with all their rows; each micro-batch holds G / micro_batches rows of every
    prompt of its slice, in prompt order. ValueError where the numbers do not divide.
    """
    prompts = {x.shape[0] for x in jax.tree.leaves(shared)}
    count = {x.shape[0] for x in jax.tree.leaves(rows)}
    if len(prompts) != 1 or len(count) != 1:
        raise ValueError(f"arrays of a batch must have one number of prompts and one of rows: saw {prompts}, {count}")
    N, B = prompts.pop(), count.pop()
    G = B // N
    if B % N or N % slices or G % micro_batches:
        raise ValueError(
            f"{N} prompts with {B} rows cannot be split into {slices} slices of {micro_batches} micro-batches: "
            f"the prompts must divide by the slices and the {B / N:g} rows of a prompt by the micro-batches"
        )

    def rows_of(x: Any) -> Any:
        x = x.reshape(slices, N // slices, micro_batches, G // micro_batches, *x.shape[1:])
        return x.swapaxes(1, 2).reshape(slices, micro_batches, -1, *x.shape[4:])

    return jax.tree.map(lambda x: x.reshape(slices, N // slices, *x.shape[1:]), shared), jax.tree.map(rows_of, rows)


def means(totals: dict[str, Total]) -> Metrics:
    """Each total's mean; a total over nothing is 0."""
    return {name: total.sum / jnp.maximum(total.denominator, 1e-8) for name, total in totals.items()}
