"""One step of a recurrent layer in float64, as its formula is written."""

import cupy as cp
from cupyx.scipy import special


def lstm_cell(gates: cp.ndarray, memory: cp.ndarray) -> tuple[cp.ndarray, cp.ndarray]:
    """Hidden and cell state [B, H] after a step, from the sums of its gates i, f, g, o [B, 4 H]."""
    i, f, g, o = cp.split(gates, 4, axis=1)
    memory = special.expit(f) * memory + special.expit(i) * cp.tanh(g)
    return special.expit(o) * cp.tanh(memory), memory


def gru_cell(of_x: cp.ndarray, of_hidden: cp.ndarray, hidden: cp.ndarray) -> cp.ndarray:
    """Hidden state [B, H] after a step, from the shares of x and of the state in the gates r, z, n [B, 3 H]."""
    (r, z, n), (hidden_r, hidden_z, hidden_n) = cp.split(of_x, 3, axis=1), cp.split(of_hidden, 3, axis=1)
    update = special.expit(z + hidden_z)
    return (1 - update) * cp.tanh(n + special.expit(r + hidden_r) * hidden_n) + update * hidden
