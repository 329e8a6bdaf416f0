"""Recurrent networks of several layers on CuPy arrays: for each step a product and one kernel for all that follows it.

The gates' share of x is one product for all steps of a layer.
"""

from collections.abc import Callable, Sequence

import cupy as cp

from evaluator.nn.cupy_nn.array import operand
from evaluator.nn.cupy_nn.exact import recurrent as exact
from evaluator.nn.cupy_nn.launch import launch
from evaluator.nn.cupy_nn.products import linear, matmul

_THREADS = 256
# A thread an element of the state. The gates of a row lie side by side, each `width` long.
_HEAD = """
__device__ __forceinline__ float sigmoid(float a) { return 1.0f / (1.0f + expf(-a)); }
"""
_PLACE = """
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= size) return;
  int column = at % width;
"""
_LSTM = f"""{_HEAD}
extern "C" __global__ void lstm_cell(const float* __restrict__ x, const float* __restrict__ h,
    const float* __restrict__ bias, const float* __restrict__ old, float* hidden, float* memory, int width, int size) {{
  {_PLACE}
  size_t row = (size_t)(at / width) * 4 * width + column;
  float gate[4];
  #pragma unroll
  for (int n = 0; n < 4; ++n) gate[n] = x[row + n * width] + h[row + n * width] + bias[column + n * width];
  float kept = sigmoid(gate[1]) * old[at] + sigmoid(gate[0]) * tanhf(gate[2]);
  memory[at] = kept;
  hidden[at] = sigmoid(gate[3]) * tanhf(kept);
}}
"""
_GRU = f"""{_HEAD}
extern "C" __global__ void gru_cell(const float* __restrict__ x, const float* __restrict__ h,
    const float* __restrict__ bias, const float* __restrict__ old, float* hidden, int width, int size) {{
  {_PLACE}
  size_t row = (size_t)(at / width) * 3 * width + column;
  float reset = sigmoid(x[row] + h[row] + bias[column]);
  float update = sigmoid(x[row + width] + h[row + width] + bias[column + width]);
  float fresh = tanhf(x[row + 2 * width] + reset * (h[row + 2 * width] + bias[column + 2 * width]));
  hidden[at] = (1.0f - update) * fresh + update * old[at];
}}
"""

State = tuple[cp.ndarray, ...]  # of one layer and direction, each [B, H]
# (x's share of the gates, the state's share without its bias, that bias, the state, where the hidden state goes)
Cell = Callable[[cp.ndarray, cp.ndarray, cp.ndarray, State, cp.ndarray], State]


def lstm(
    x: cp.ndarray,
    states: tuple[cp.ndarray, cp.ndarray],
    weights: Sequence[cp.ndarray],
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
    """Outputs of the last layer, then the final hidden and cell states of all; `jax_nn.lstm` says what it takes."""
    outputs, (hidden, memory) = _layers(_lstm_step, x, states, weights, bidirectional, batch_first)
    return outputs, hidden, memory


def gru(
    x: cp.ndarray,
    h0: cp.ndarray,
    weights: Sequence[cp.ndarray],
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[cp.ndarray, cp.ndarray]:
    """Outputs of the last layer, then the final states of all; as `lstm`, with the gates r, z and n."""
    outputs, (hidden,) = _layers(_gru_step, x, (h0,), weights, bidirectional, batch_first)
    return outputs, hidden


def _layers(
    cell: Cell, x: cp.ndarray, states: State, weights: Sequence[cp.ndarray], bidirectional: bool, batch_first: bool
) -> tuple[cp.ndarray, State]:
    x = cp.swapaxes(x, 0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    last = []
    for first in range(0, len(states[0]), directions):
        outputs = []
        for way in range(directions):
            at = first + way
            begin = tuple(part[at] for part in states)
            output, final = _steps(cell, x, begin, weights[4 * at : 4 * at + 4], backward=way == 1)
            outputs.append(output)
            last.append(final)
        x = operand(cp.concatenate(outputs, axis=-1)) if bidirectional else outputs[0]
    x = cp.swapaxes(x, 0, 1) if batch_first else x
    return x, tuple(operand(cp.stack(part)) for part in zip(*last, strict=True))


def _steps(
    cell: Cell, x: cp.ndarray, state: State, weights: Sequence[cp.ndarray], backward: bool
) -> tuple[cp.ndarray, State]:
    """Hidden states [T, B, H] of one layer in one direction, and the last state."""
    of_x, of_hidden, bias_x, bias_hidden = weights
    gates = linear(x, of_x, bias_x)
    hidden = type(x)((len(x), *state[0].shape), x.dtype)
    for at in range(len(x))[:: -1 if backward else 1]:
        state = cell(gates[at], matmul(state[0], of_hidden.T), bias_hidden, state, hidden[at])
    return hidden, state


def _lstm_step(x: cp.ndarray, h: cp.ndarray, bias: cp.ndarray, state: State, out: cp.ndarray) -> State:
    if x.dtype != cp.float32:
        out[:], memory = exact.lstm_cell(x + h + bias, state[1])
        return out, memory
    memory = type(x)(out.shape, cp.float32)
    _launch(_LSTM, "lstm_cell", (x, h, bias, state[1], out, memory))
    return out, memory


def _gru_step(x: cp.ndarray, h: cp.ndarray, bias: cp.ndarray, state: State, out: cp.ndarray) -> State:
    if x.dtype != cp.float32:
        out[:] = exact.gru_cell(x, h + bias, state[0])
    else:
        _launch(_GRU, "gru_cell", (x, h, bias, state[0], out))
    return (out,)


def _launch(text: str, name: str, arrays: tuple[cp.ndarray, ...]) -> None:
    state = arrays[4]  # after the gates' two shares, the bias and the old state: where the hidden state goes
    if state.size:
        launch(text, name, (-(-state.size // _THREADS),), (_THREADS,), (*arrays, state.shape[-1], state.size))
