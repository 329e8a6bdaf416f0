"""Recurrent networks, by the operations of one step, times the steps."""

from collections.abc import Sequence

from evaluator.nn.count_nn.array import Array

# For each element of the state. LSTM: three sums in each of four gates, three sigmoids of four operations, two tanh,
# and four to join them. GRU: six biased gates, three sums, two sigmoids, a tanh, and five to join them.
_LSTM_STEP, _GRU_STEP = 4 * 3 + 3 * 4 + 2 + 4, 6 + 3 + 2 * 4 + 1 + 5


def lstm(
    x: Array,
    states: tuple[Array, Array],
    weights: Sequence[Array],
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Array, Array, Array]:
    outputs = _layers(x, states[0], weights, bidirectional, batch_first, per_element=_LSTM_STEP)
    return outputs, states[0].moved(states[0].shape), states[1].moved(states[1].shape)


def gru(
    x: Array, h0: Array, weights: Sequence[Array], bidirectional: bool = False, batch_first: bool = False
) -> tuple[Array, Array]:
    outputs = _layers(x, h0, weights, bidirectional, batch_first, per_element=_GRU_STEP)
    return outputs, h0.moved(h0.shape)


def _layers(
    x: Array, hidden: Array, weights: Sequence[Array], bidirectional: bool, batch_first: bool, per_element: int
) -> Array:
    cells, batch, width = hidden.shape
    steps, given = x.shape[1 if batch_first else 0], x.shape[0 if batch_first else 1]
    if given != batch or len(weights) != 4 * cells:
        raise ValueError(
            f"{cells} states of {batch} rows need {4 * cells} weights, {batch} rows of x; saw {len(weights)}, {given}"
        )
    for at in range(cells):
        of_x, of_hidden = weights[4 * at], weights[4 * at + 1]
        x.tally.operations += steps * batch * (2 * (of_x.size + of_hidden.size) + per_element * width)
    return x.moved((*x.shape[:2], width * (2 if bidirectional else 1)))
