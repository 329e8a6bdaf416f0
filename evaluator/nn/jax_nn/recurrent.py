"""Recurrent networks of several layers, in JAX. The arguments are plain ones: `torch.lstm` takes a dozen by position."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

State = tuple[jax.Array, ...]  # of one layer and direction, each [B, H]


def lstm(
    x: jax.Array,
    states: tuple[jax.Array, jax.Array],
    weights: Sequence[jax.Array],
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Outputs of the last layer, then the final hidden and cell states of all.

    x is [T, B, I], or [B, T, I] with `batch_first`; `states` are the initial hidden and cell states, [layers, B, H]
    each, or [2 layers, B, H] where `bidirectional`: a layer forward, then backward. `weights` has for each of these
    weight_ih, weight_hh, bias_ih and bias_hh, whose rows are the gates i, f, g and o. Outputs are [T, B, H], twice as
    wide where bidirectional, in the order of x.
    """

    def cell(state: State, gates: jax.Array, weight: jax.Array, bias: jax.Array) -> State:
        hidden, memory = state
        i, f, g, o = jnp.split(gates + hidden @ weight.T + bias, 4, axis=-1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(memory), memory

    outputs, (hidden, memory) = _layers(cell, x, states, weights, bidirectional, batch_first)
    return outputs, hidden, memory


def gru(
    x: jax.Array, h0: jax.Array, weights: Sequence[jax.Array], bidirectional: bool = False, batch_first: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Outputs of the last layer, then the final states of all; as `lstm`, with the gates r, z and n."""

    def cell(state: State, gates: jax.Array, weight: jax.Array, bias: jax.Array) -> State:
        (hidden,) = state
        of_x, of_hidden = jnp.split(gates, 3, axis=-1), jnp.split(hidden @ weight.T + bias, 3, axis=-1)
        reset, update = (jax.nn.sigmoid(of_x[gate] + of_hidden[gate]) for gate in (0, 1))
        new = jnp.tanh(of_x[2] + reset * of_hidden[2])
        return ((1 - update) * new + update * hidden,)

    outputs, (hidden,) = _layers(cell, x, (h0,), weights, bidirectional, batch_first)
    return outputs, hidden


def _layers(
    cell: Callable[[State, jax.Array, jax.Array, jax.Array], State],
    x: jax.Array,
    states: State,
    weights: Sequence[jax.Array],
    bidirectional: bool,
    batch_first: bool,
) -> tuple[jax.Array, State]:
    """One scan for each layer and direction; the gates' share of x is one product for all steps."""
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    last = []
    for first in range(0, len(states[0]), directions):
        outputs = []
        for way in range(directions):
            at = first + way
            of_x, of_hidden, bias_x, bias_hidden = weights[4 * at : 4 * at + 4]

            def step(state: State, gates: jax.Array, w: jax.Array = of_hidden, b: jax.Array = bias_hidden) -> tuple:
                state = cell(state, gates, w, b)
                return state, state[0]

            begin = tuple(part[at] for part in states)
            final, output = jax.lax.scan(step, begin, x @ of_x.T + bias_x, reverse=bool(way))
            last.append(final)
            outputs.append(output)
        x = jnp.concatenate(outputs, axis=-1)
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    return x, tuple(jnp.stack(part) for part in zip(*last, strict=True))
