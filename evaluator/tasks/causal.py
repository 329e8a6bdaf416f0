"""Causal self-attention and a transformer block of KernelBench level 3, written out step by step."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, uniform
from evaluator.tasks.task import Array, Task


def causal_attention(nn, x, c_attn_weight, c_attn_bias, c_proj_weight, c_proj_bias):
    heads = 8
    batch, steps, width = x.shape
    parts = nn.chunk(nn.linear(x, c_attn_weight, c_attn_bias), 3, dim=2)
    q, k, v = [nn.transpose(part.reshape(batch, steps, heads, width // heads), 1, 2) for part in parts]
    scores = nn.matmul(q, nn.transpose(k, -2, -1)) * (width // heads) ** -0.5
    later = nn.tril(nn.ones_like(scores[0, 0])) < 1
    weights = nn.softmax(nn.masked_fill(scores, later, -float("inf")), dim=-1)
    y = nn.transpose(nn.matmul(weights, v), 1, 2).reshape(batch, steps, width)
    return nn.linear(y, c_proj_weight, c_proj_bias)


def transformer_block(
    nn, x, ln_1_weight, ln_1_bias, attn_c_attn_weight, attn_c_attn_bias, attn_c_proj_weight, attn_c_proj_bias,
    ln_2_weight, ln_2_bias, mlp_c_fc_weight, mlp_c_fc_bias, mlp_c_proj_weight, mlp_c_proj_bias,
):  # fmt: skip
    heads = 8
    batch, steps, width = x.shape

    def attention(x):
        parts = nn.chunk(nn.linear(x, attn_c_attn_weight, attn_c_attn_bias), 3, dim=2)
        q, k, v = [nn.transpose(part.reshape(batch, steps, heads, width // heads), 1, 2) for part in parts]
        scores = nn.matmul(q, nn.transpose(k, -2, -1)) * (width // heads) ** -0.5
        later = nn.tril(nn.ones_like(scores[0, 0])) < 1
        weights = nn.softmax(nn.masked_fill(scores, later, -float("inf")), dim=-1)
        y = nn.transpose(nn.matmul(weights, v), 1, 2).reshape(batch, steps, width)
        return nn.linear(y, attn_c_proj_weight, attn_c_proj_bias)

    def gelu(x):
        return 0.5 * x * (1.0 + nn.tanh(0.7978845608028654 * (x + 0.044715 * nn.pow(x, 3.0))))

    x = x + attention(nn.layer_norm(x, (width,), ln_1_weight, ln_1_bias))
    y = gelu(nn.linear(nn.layer_norm(x, (width,), ln_2_weight, ln_2_bias), mlp_c_fc_weight, mlp_c_fc_bias))
    return x + nn.linear(y, mlp_c_proj_weight, mlp_c_proj_bias)


def relu_attention(nn, x, c_attn_weight, c_attn_bias):
    heads = 12
    batch, steps, width = x.shape
    parts = nn.chunk(nn.linear(x, c_attn_weight, c_attn_bias), 3, dim=2)
    q, k, v = [nn.transpose(part.reshape(batch, steps, heads, width // heads), 1, 2) for part in parts]
    scores = nn.matmul(q, nn.transpose(k, -2, -1)) * (width // heads) ** -0.5
    later = nn.tril(nn.ones_like(scores[0, 0])) < 1
    weights = nn.relu(nn.masked_fill(scores, later, -float("inf")))
    return nn.transpose(nn.matmul(weights, v), 1, 2).reshape(batch, steps, width)


def attention_weights(width: int) -> tuple[Array, ...]:
    return layer("c_attn", (3 * width, width)) + layer("c_proj", (width, width))


def block_weights(width: int) -> tuple[Array, ...]:
    return (
        *affine("ln_1", width),
        *layer("attn.c_attn", (3 * width, width)),
        *layer("attn.c_proj", (width, width)),
        *affine("ln_2", width),
        *layer("mlp.c_fc", (4 * width, width)),
        *layer("mlp.c_proj", (width, 4 * width)),
    )


CAUSAL_ATTENTION = Task(
    id="3_043",
    name="MinGPTCausalAttention",
    family="model",
    source=forward_text(causal_attention),
    sizes={
        "cpu": uniform(x=(3, 70, 104)) + attention_weights(104),
        "kb": uniform(x=(128, 512, 768)) + attention_weights(768),
        "kb_v0": normal(x=(128, 512, 768)) + attention_weights(768),
    },
)

TRANSFORMER_BLOCK = Task(
    id="3_044",
    name="MiniGPTBlock",
    family="model",
    source=forward_text(transformer_block),
    sizes={
        "cpu": uniform(x=(3, 70, 104)) + block_weights(104),
        "kb": uniform(x=(128, 512, 768)) + block_weights(768),
        "kb_v0": normal(x=(128, 512, 768)) + block_weights(768),
    },
)

RELU_ATTENTION = Task(
    id="3_050",
    name="ReLUSelfAttention",
    family="model",
    source=forward_text(relu_attention),
    sizes={
        "cpu": uniform(x=(3, 90, 84)) + layer("c_attn", (252, 84)),
        "kb": uniform(x=(16, 1024, 768)) + layer("c_attn", (2304, 768)),
        "kb_v0": normal(x=(16, 1024, 768)) + layer("c_attn", (2304, 768)),
    },
    notes=("The product c_proj, which the model declares, is not used and not passed.",),
)
