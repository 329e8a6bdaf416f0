"""Recurrent networks of several layers, in JAX.

The arguments are fewer than `torch.lstm` takes: the number of layers is that of the states, and there are biases.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

State = tuple[jax.Array, ...]  # of one layer and direction, each [B, H]
Cell = Callable[[State, jax.Array, jax.Array], State]  # of a state, and the shares of x and of the state in the gates


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

    outputs, (hidden, memory) = _layers(_lstm_cell, x, states, weights, bidirectional, batch_first)
    return outputs, hidden, memory


def gru(
    x: jax.Array, h0: jax.Array, weights: Sequence[jax.Array], bidirectional: bool = False, batch_first: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Outputs of the last layer, then the final states of all; as `lstm`, with the gates r, z and n."""

    outputs, (hidden,) = _layers(_gru_cell, x, (h0,), weights, bidirectional, batch_first)
    return outputs, hidden


def _lstm_cell(state: State, of_x: jax.Array, of_hidden: jax.Array) -> State:
    i, f, g, o = jnp.split(of_x + of_hidden, 4, axis=-1)
    memory = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


def _gru_cell(state: State, of_x: jax.Array, of_hidden: jax.Array) -> State:
    (r, z, n), (hidden_r, hidden_z, hidden_n) = jnp.split(of_x, 3, axis=-1), jnp.split(of_hidden, 3, axis=-1)
    update = jax.nn.sigmoid(z + hidden_z)
    return ((1 - update) * jnp.tanh(n + jax.nn.sigmoid(r + hidden_r) * hidden_n) + update * state[0],)


def _layers(
    cell: Cell, x: jax.Array, states: State, weights: Sequence[jax.Array], bidirectional: bool, batch_first: bool
) -> tuple[jax.Array, State]:
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    last = []
    for first in range(0, len(states[0]), directions):
        outputs = []
        for way in range(directions):
            at = first + way
            begin = tuple(part[at] for part in states)
            final, output = _steps(cell, begin, x, *weights[4 * at : 4 * at + 4], backward=way == 1)
            last.append(final)
            outputs.append(output)
        x = jnp.concatenate(outputs, axis=-1)
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    return x, tuple(jnp.stack(part) for part in zip(*last, strict=True))


# A scan outside of `jit` is compiled anew at every call; this is compiled once for all layers alike.
@functools.partial(jax.jit, static_argnames=("cell", "backward"))
def _steps(
    cell: Cell,
    begin: State,
    x: jax.Array,
    of_x: jax.Array,
    of_hidden: jax.Array,
    bias_x: jax.Array,
    bias_hidden: jax.Array,
    backward: bool,
) -> tuple[State, jax.Array]:
    """Last state, and hidden states [T, B, H], of one layer in one direction; x's share of the gates is one product."""

    def step(state: State, gates: jax.Array) -> tuple[State, jax.Array]:
        state = cell(state, gates, state[0] @ of_hidden.T + bias_hidden)
        return state, state[0]

    return jax.lax.scan(step, begin, x @ of_x.T + bias_x, reverse=backward)
