"""Attention and transformers of KernelBench level 3."""

import math

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import Array, Task


def vision_transformer(nn, img, pos_embedding, cls_token, *weights):
    left = iter(weights)
    heads, patch, layers = 8, 16, 6

    def attention(x, in_weight, in_bias, out_weight, out_bias):  # [T, B, E]: over the first dimension
        steps, batch, width = x.shape
        parts = nn.chunk(nn.linear(x, in_weight, in_bias), 3, dim=-1)
        parts = [nn.transpose(part.reshape(steps, batch * heads, width // heads), 0, 1) for part in parts]
        x = nn.scaled_dot_product_attention(*parts)
        return nn.linear(nn.transpose(x, 0, 1).reshape(steps, batch, width), out_weight, out_bias)

    def encoder(x):
        attn = [next(left) for _ in range(4)]
        weight1, bias1, weight2, bias2 = [next(left) for _ in range(4)]
        x = x + attention(x, *attn)
        x = nn.layer_norm(x, x.shape[-1:], next(left), next(left))
        x = x + nn.linear(nn.relu(nn.linear(x, weight1, bias1)), weight2, bias2)
        return nn.layer_norm(x, x.shape[-1:], next(left), next(left))

    x = nn.unfold(nn.unfold(img, 2, patch, patch), 3, patch, patch)
    x = x.reshape(img.shape[0], -1, img.shape[1] * patch * patch)
    x = nn.linear(x, next(left), next(left))
    x = nn.cat((nn.expand(cls_token, (img.shape[0], -1, -1)), x), dim=1) + pos_embedding
    for _ in range(layers):
        x = encoder(x)
    x = nn.gelu(nn.linear(x[:, 0], next(left), next(left)))
    return nn.linear(x, next(left), next(left))


def vision_attention(
    nn, x, attn_in_proj_weight, attn_in_proj_bias, attn_out_proj_weight, attn_out_proj_bias, norm_weight, norm_bias,
):  # fmt: skip
    heads = 4
    batch, width, height, columns = x.shape
    x = nn.permute(x.reshape(batch, width, height * columns), (2, 0, 1))
    parts = nn.chunk(nn.linear(x, attn_in_proj_weight, attn_in_proj_bias), 3, dim=-1)
    q, k, v = [nn.transpose(part.reshape(-1, batch * heads, width // heads), 0, 1) for part in parts]
    scores = nn.bmm(q * (width // heads) ** -0.5, nn.transpose(k, 1, 2))
    seen = nn.bmm(nn.softmax(scores, dim=-1), v)
    seen = nn.linear(nn.transpose(seen, 0, 1).reshape(-1, batch, width), attn_out_proj_weight, attn_out_proj_bias)
    x = nn.layer_norm(seen + x, (width,), norm_weight, norm_bias)
    return nn.permute(x, (1, 2, 0)).reshape(batch, width, height, columns)


def convolutional_transformer(nn, x, cls_token, *weights):
    left = iter(weights)
    heads, layers = 4, 6

    def attention(x, in_weight, in_bias, out_weight, out_bias):
        batch, steps, width = x.shape
        parts = nn.chunk(nn.linear(x, in_weight, in_bias), 3, dim=-1)
        parts = [nn.transpose(part.reshape(batch, steps, heads, width // heads), 1, 2) for part in parts]
        x = nn.scaled_dot_product_attention(*parts)
        return nn.linear(nn.transpose(x, 1, 2).reshape(batch, steps, width), out_weight, out_bias)

    def encoder(x):
        attn = [next(left) for _ in range(4)]
        weight1, bias1, weight2, bias2 = [next(left) for _ in range(4)]
        x = x + attention(x, *attn)
        x = nn.layer_norm(x, x.shape[-1:], next(left), next(left))
        x = x + nn.linear(nn.relu(nn.linear(x, weight1, bias1)), weight2, bias2)
        return nn.layer_norm(x, x.shape[-1:], next(left), next(left))

    x = nn.flatten(nn.conv2d(x, next(left), next(left), stride=4), start_dim=1)
    x = nn.linear(x, next(left), next(left))
    x = nn.cat((nn.expand(cls_token, (x.shape[0], -1, -1)), nn.unsqueeze(x, 1)), dim=1)
    for _ in range(layers):
        x = encoder(x)
    return nn.linear(x[:, 0], next(left), next(left))


def convolutional_transformer_v0(nn, x, cls_token, *weights):
    left = iter(weights)
    heads, layers = 4, 6

    def attention(x, in_weight, in_bias, out_weight, out_bias):  # [T, B, E]: over the first dimension
        steps, batch, width = x.shape
        parts = nn.chunk(nn.linear(x, in_weight, in_bias), 3, dim=-1)
        parts = [nn.transpose(part.reshape(steps, batch * heads, width // heads), 0, 1) for part in parts]
        x = nn.scaled_dot_product_attention(*parts)
        return nn.linear(nn.transpose(x, 0, 1).reshape(steps, batch, width), out_weight, out_bias)

    def encoder(x):
        attn = [next(left) for _ in range(4)]
        weight1, bias1, weight2, bias2 = [next(left) for _ in range(4)]
        x = x + attention(x, *attn)
        x = nn.layer_norm(x, x.shape[-1:], next(left), next(left))
        x = x + nn.linear(nn.relu(nn.linear(x, weight1, bias1)), weight2, bias2)
        return nn.layer_norm(x, x.shape[-1:], next(left), next(left))

    x = nn.flatten(nn.conv2d(x, next(left), next(left), stride=4), start_dim=1)
    x = nn.linear(x, next(left), next(left))
    x = nn.cat((nn.expand(cls_token, (x.shape[0], -1, -1)), nn.unsqueeze(x, 1)), dim=1)
    for _ in range(layers):
        x = encoder(x)
    return nn.linear(x[:, 0], next(left), next(left))


def attention_weights(name: str, width: int) -> tuple[Array, ...]:
    """Weights of PyTorch's multi-head attention: Xavier's range for the first product, biases of zero."""
    bound = f"{math.sqrt(6 / (4 * width)):.6g}"
    return (
        parameter(f"{name}.in_proj_weight", (3 * width, width), f"uniform(-{bound},{bound})"),
        parameter(f"{name}.in_proj_bias", (3 * width,), "constant(0)"),
        *layer(f"{name}.out_proj", (width, width), bias=False),
        parameter(f"{name}.out_proj.bias", (width,), "constant(0)"),
    )


def encoder_weights(name: str, width: int, inner: int, layers: int) -> tuple[Array, ...]:
    return sum(
        (
            attention_weights(f"{name}.{at}.self_attn", width)
            + layer(f"{name}.{at}.linear1", (inner, width))
            + layer(f"{name}.{at}.linear2", (width, inner))
            + affine(f"{name}.{at}.norm1", width)
            + affine(f"{name}.{at}.norm2", width)
            for at in range(layers)
        ),
        (),
    )


def vision_transformer_weights(tokens: int, width: int, inner: int) -> tuple[Array, ...]:
    return (
        parameter("pos_embedding", (1, tokens, width), "normal(0,1)"),
        parameter("cls_token", (1, 1, width), "normal(0,1)"),
        *layer("patch_to_embedding", (width, 3 * 16 * 16)),
        *encoder_weights("transformer.layers", width, inner, layers=6),
        *layer("mlp_head.0", (inner, width)),
        *layer("mlp_head.3", (10, inner)),
    )


def convolutional_weights(patches: int, width: int, classes: int) -> tuple[Array, ...]:
    return (
        parameter("cls_token", (1, 1, width), "constant(0)"),
        *layer("conv1", (width, 3, 4, 4)),
        *layer("linear_proj", (width, width * patches)),
        *encoder_weights("transformer_layers", width, 4 * width, layers=6),
        *layer("fc_out", (classes, width)),
    )


def vision_attention_weights(width: int) -> tuple[Array, ...]:
    return attention_weights("attn", width) + affine("norm", width)


VISION_TRANSFORMER = Task(
    id="3_028",
    name="VisionTransformer",
    family="model",
    source=forward_text(vision_transformer),
    sizes={
        "cpu": uniform(img=(3, 3, 48, 48)) + vision_transformer_weights(tokens=10, width=72, inner=150),
        "kb": uniform(img=(2, 3, 224, 224)) + vision_transformer_weights(tokens=197, width=512, inner=2048),
        "kb_v0": normal(img=(2, 3, 224, 224)) + vision_transformer_weights(tokens=197, width=512, inner=2048),
    },
    degenerate="attention runs over the images of the batch, not over patches, and only the class token is used: "
    "the output depends on the weights alone",
)

VISION_ATTENTION = Task(
    id="3_031",
    name="VisionAttention",
    family="model",
    source=forward_text(vision_attention),
    sizes={
        "cpu": uniform(x=(2, 52, 14, 11)) + vision_attention_weights(52),
        "kb": uniform(x=(2, 128, 128, 128)) + vision_attention_weights(128),
        "kb_v0": normal(x=(2, 128, 128, 128)) + vision_attention_weights(128),
    },
    notes=(
        "At kb the weights of attention, 16,384 by 16,384 for each of eight heads, fill 8.6 GB if they are stored.",
    ),
)

CONVOLUTIONAL_TRANSFORMER = Task(
    id="3_032",
    name="ConvolutionalVisionTransformer",
    family="model",
    source=forward_text(convolutional_transformer),
    sizes={
        "cpu": uniform(x=(5, 3, 20, 20)) + convolutional_weights(patches=25, width=36, classes=100),
        "kb": uniform(x=(10, 3, 32, 32)) + convolutional_weights(patches=64, width=128, classes=1000),
        "kb_v0": normal(x=(10, 3, 32, 32)) + convolutional_weights(patches=64, width=128, classes=1000),
    },
    precision="tf32",
    notes=(
        "All patches become one token, so attention is over two.",
        "At kb_v0 attention runs over the images of the batch instead.",
    ),
    sources_at={"kb_v0": forward_text(convolutional_transformer_v0)},
)
