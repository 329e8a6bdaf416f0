"""Recurrent networks of KernelBench level 3: a plain cell, LSTM and GRU."""

from evaluator.tasks.notation import Shape, forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import CASES, Array, Task

# The benchmark draws these from the standard normal distribution inside the model; here they are inputs.
DRAWN = "The initial state, which the benchmark draws at random inside the model, is an input."
DRAWN_V0 = (
    "At kb_v0 the benchmark draws the initial state at random inside the model; here it is an input at every size."
)
KEPT_V0 = (
    "At kb_v0 the benchmark draws the hidden state at random and keeps it from call to call; here it is an input, and "
    "the state after the call is not kept."
)

# Whole numbers as weights saturate the gates, and each of six layers amplifies what cancels in the one before.
GATED_CASES = tuple(case for case in CASES if case not in ("integers", "alike"))


def rnn_step(nn, x, initial_hidden, i2h_weight, i2h_bias, h2o_weight, h2o_bias):
    hidden = nn.tanh(nn.linear(nn.cat((x, initial_hidden), dim=1), i2h_weight, i2h_bias))
    return nn.linear(hidden, h2o_weight, h2o_bias)


def rnn(nn, x, h0, i2h_weight, i2h_bias, h2o_weight, h2o_bias):
    hidden = h0
    outputs = []
    for step in range(x.shape[0]):
        hidden = nn.tanh(nn.linear(nn.cat((x[step], hidden), dim=1), i2h_weight, i2h_bias))
        outputs.append(nn.linear(hidden, h2o_weight, h2o_bias))
    return nn.stack(outputs, dim=0)


def rnn_v0(nn, x, hidden, i2h_weight, i2h_bias, h2o_weight, h2o_bias):
    return nn.tanh(nn.linear(nn.cat((x, hidden), dim=1), i2h_weight, i2h_bias))


def lstm_last(nn, x, h0, c0, *weights):
    *cells, fc_weight, fc_bias = weights
    outputs, *_ = nn.lstm(x, (h0, c0), cells, batch_first=True)
    return nn.linear(outputs[:, -1], fc_weight, fc_bias)


def lstm_hidden(nn, x, h0, c0, *weights):
    return nn.lstm(x, (h0, c0), weights[:-2], batch_first=True)[1]  # the linear layer is not used


def lstm_memory(nn, x, h0, c0, *weights):
    return nn.lstm(x, (h0, c0), weights[:-2], batch_first=True)[2]  # the linear layer is not used


def lstm_bidirectional(nn, x, h0, c0, *weights):
    *cells, fc_weight, fc_bias = weights
    outputs, *_ = nn.lstm(x, (h0, c0), cells, bidirectional=True, batch_first=True)
    return nn.linear(outputs[:, -1], fc_weight, fc_bias)


def gru_outputs(nn, x, h0, *weights):
    return nn.gru(x, h0, weights)[0]


def gru_hidden(nn, x, h0, *weights):
    return nn.gru(x, h0, weights)[1]


def gru_bidirectional(nn, x, h0, *weights):
    return nn.gru(x, h0, weights, bidirectional=True)[0]


def gru_bidirectional_hidden(nn, x, h0, *weights):
    return nn.gru(x, h0, weights, bidirectional=True)[1]


def rnn_weights(inputs: int, hidden: int, outputs: int) -> tuple[Array, ...]:
    return layer("i2h", (hidden, inputs + hidden)) + layer("h2o", (outputs, hidden))


def cells(name: str, gates: int, inputs: int, hidden: int, layers: int, directions: int) -> tuple[Array, ...]:
    """Weights of a recurrent network, uniform within 1 / sqrt(hidden) as PyTorch initialises them."""
    bound = f"{hidden**-0.5:.6g}"
    found = []
    for at in range(layers):
        width = directions * hidden if at else inputs
        shapes: dict[str, Shape] = {
            "weight_ih": (gates * hidden, width),
            "weight_hh": (gates * hidden, hidden),
            "bias_ih": (gates * hidden,),
            "bias_hh": (gates * hidden,),
        }
        for way in ("", "_reverse")[:directions]:
            for kind, shape in shapes.items():
                found.append(parameter(f"{name}.{kind}_l{at}{way}", shape, f"uniform(-{bound},{bound})"))
    return tuple(found)


def lstm_sizes(directions: int, drawn: bool = False) -> dict[str, tuple[Array, ...]]:
    """Sizes of an LSTM of six layers and a linear layer; `drawn`: the initial state is normal at every size."""

    def arrays(draw, draw_states, batch: int, steps: int, inputs: int, hidden: int, outputs: int) -> tuple[Array, ...]:
        state = (6 * directions, batch, hidden)
        return (
            *draw(x=(batch, steps, inputs)),
            *draw_states(h0=state, c0=state),
            *cells("lstm", 4, inputs, hidden, layers=6, directions=directions),
            *layer("fc", (outputs, directions * hidden)),
        )

    states = normal if drawn else uniform
    return {
        "cpu": arrays(uniform, states, batch=5, steps=14, inputs=30, hidden=44, outputs=10),
        "kb": arrays(uniform, states, batch=10, steps=512, inputs=128, hidden=256, outputs=10),
        "kb_v0": arrays(normal, normal, batch=10, steps=512, inputs=128, hidden=256, outputs=10),
    }


def gru_sizes(directions: int) -> dict[str, tuple[Array, ...]]:
    """Sizes of a GRU of six layers."""

    def arrays(draw, steps: int, batch: int, inputs: int, hidden: int) -> tuple[Array, ...]:
        return (
            *draw(x=(steps, batch, inputs), h0=(6 * directions, batch, hidden)),
            *cells("gru", 3, inputs, hidden, layers=6, directions=directions),
        )

    return {
        "cpu": arrays(uniform, steps=14, batch=5, inputs=30, hidden=44),
        "kb": arrays(uniform, steps=512, batch=10, inputs=128, hidden=256),
        "kb_v0": arrays(normal, steps=512, batch=10, inputs=128, hidden=256),
    }


RNN_STEP = Task(
    id="3_033",
    name="VanillaRNN",
    family="model",
    source=forward_text(rnn_step),
    sizes={
        "cpu": uniform(x=(20, 250), initial_hidden=(20, 210)) + rnn_weights(250, 210, 130),
        "kb": uniform(x=(256, 16384), initial_hidden=(256, 16384)) + rnn_weights(16384, 16384, 8192),
        "kb_v0": normal(x=(8, 1024), initial_hidden=(8, 256)) + rnn_weights(1024, 256, 128),
    },
    notes=(KEPT_V0,),
)

RNN = Task(
    id="3_034",
    name="VanillaRNNHidden",
    family="model",
    source=forward_text(rnn),
    sizes={
        "cpu": uniform(x=(18, 5, 130), h0=(5, 70)) + rnn_weights(130, 70, 40),
        "kb": uniform(x=(256, 8, 1024), h0=(8, 256)) + rnn_weights(1024, 256, 128),
        "kb_v0": normal(x=(8, 1024), hidden=(8, 256)) + rnn_weights(1024, 256, 128),
    },
    notes=("At kb_v0 the task is one step, which gives the new hidden state; h2o is computed in vain.", KEPT_V0),
    sources_at={"kb_v0": forward_text(rnn_v0)},
)

LSTM_LAST = Task(
    id="3_035",
    name="LSTM",
    family="model",
    source=forward_text(lstm_last),
    sizes=lstm_sizes(directions=1, drawn=True),
    cases=GATED_CASES,
    notes=(
        DRAWN,
        "Insensitive: at kb and kb_v0 the last of 512 steps has forgotten the first ones and, through six layers, most "
        "of what is in x; outputs for different inputs differ by less than 1e-4.",
    ),
)

LSTM_HIDDEN = Task(
    id="3_036",
    name="LSTMHn",
    family="model",
    source=forward_text(lstm_hidden),
    sizes=lstm_sizes(directions=1),
    cases=GATED_CASES,
    notes=("The linear layer is in the model, but its result is not used.", DRAWN_V0),
)

LSTM_MEMORY = Task(
    id="3_037",
    name="LSTMCn",
    family="model",
    source=forward_text(lstm_memory),
    sizes=lstm_sizes(directions=1),
    cases=GATED_CASES,
    notes=("The linear layer is in the model, but its result is not used.", DRAWN_V0),
)

LSTM_BIDIRECTIONAL = Task(
    id="3_038",
    name="LSTMBidirectional",
    family="model",
    source=forward_text(lstm_bidirectional),
    sizes=lstm_sizes(directions=2),
    cases=GATED_CASES,
    notes=(DRAWN_V0,),
)

GRU = Task(
    id="3_039",
    name="GRU",
    family="model",
    source=forward_text(gru_outputs),
    sizes=gru_sizes(directions=1),
    cases=GATED_CASES,
    notes=(DRAWN_V0,),
)

GRU_HIDDEN = Task(
    id="3_040",
    name="GRUHidden",
    family="model",
    source=forward_text(gru_hidden),
    sizes=gru_sizes(directions=1),
    cases=GATED_CASES,
    notes=(DRAWN_V0,),
)

GRU_BIDIRECTIONAL = Task(
    id="3_041",
    name="GRUBidirectional",
    family="model",
    source=forward_text(gru_bidirectional),
    sizes=gru_sizes(directions=2),
    cases=GATED_CASES,
    notes=(DRAWN_V0,),
)

GRU_BIDIRECTIONAL_HIDDEN = Task(
    id="3_042",
    name="GRUBidirectionalHidden",
    family="model",
    source=forward_text(gru_bidirectional_hidden),
    sizes=gru_sizes(directions=2),
    cases=GATED_CASES,
    notes=(DRAWN_V0,),
)
