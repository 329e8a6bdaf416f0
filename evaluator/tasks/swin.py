"""Hierarchical vision models over shifted windows, KernelBench level 3: Swin MLP and Swin Transformer V2."""

from evaluator.tasks.norms import affine
from evaluator.tasks.notation import forward_text, layer, normal, parameter, uniform
from evaluator.tasks.task import Array, Task

DEPTHS, HEADS = (2, 2, 6, 2), (3, 6, 12, 24)  # blocks and heads of the four stages
HIDDEN = 512  # of the two layers that make the bias of positions


def swin_mlp(nn, x, *weights):
    left = iter(weights)
    window = 7

    def norm(x):
        return nn.layer_norm(x, x.shape[-1:], next(left), next(left))

    def linear(x):
        return nn.linear(x, next(left), next(left))

    def in_windows(x):  # [B, H, W, C] -> [windows, 49, C]
        batch, height, width, channels = x.shape
        x = x.reshape(batch, height // window, window, width // window, window, channels)
        return nn.permute(x, (0, 1, 3, 2, 4, 5)).reshape(-1, window * window, channels)

    def in_images(x, height, width):  # and back
        x = x.reshape(-1, height // window, width // window, window, window, x.shape[-1])
        return nn.permute(x, (0, 1, 3, 2, 4, 5)).reshape(-1, height, width, x.shape[-1])

    def spatial(x, heads):  # for each head a product over the places of a window
        channels = x.shape[-1] // heads
        x = nn.transpose(x.reshape(-1, window * window, heads, channels), 1, 2)
        x = nn.conv1d(x.reshape(-1, heads * window * window, channels), next(left), next(left), groups=heads)
        x = nn.transpose(x.reshape(-1, heads, window * window, channels), 1, 2)
        return x.reshape(-1, window * window, heads * channels)

    def block(x, heads, shift):  # [B, H, W, C]
        height, width = x.shape[1:3]
        y = norm(x)
        if shift:
            y = nn.pad(y, (0, 0, window - shift, shift, window - shift, shift))
        y = in_images(spatial(in_windows(y), heads), y.shape[1], y.shape[2])
        if shift:
            y = y[:, window - shift : window - shift + height, window - shift : window - shift + width]
        x = x + y
        return x + linear(nn.gelu(linear(norm(x))))

    def merged(x):
        x = nn.cat((x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]), dim=-1)
        reduction = next(left)
        return nn.linear(norm(x), reduction)

    x = nn.conv2d(x, next(left), next(left), stride=4)
    x = norm(nn.permute(x, (0, 2, 3, 1)))
    for stage, (depth, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
        for at in range(depth):
            x = block(x, heads, window // 2 if at % 2 and x.shape[1] > window else 0)
        x = merged(x) if stage < 3 else x
    x = nn.flatten(norm(x), start_dim=1, end_dim=2)
    x = nn.flatten(nn.adaptive_avg_pool1d(nn.transpose(x, 1, 2), 1), start_dim=1)
    return linear(x)


def swin_transformer(nn, x, *weights):
    left = iter(weights)
    window, shift = 7, 3
    ones = nn.ones_like(x[0, 0, 0])

    def norm(x):
        return nn.layer_norm(x, x.shape[-1:], next(left), next(left))

    def linear(x):
        return nn.linear(x, next(left), next(left))

    def in_windows(x):  # [B, H, W, C] -> [windows, 49, C]
        batch, height, width, channels = x.shape
        x = x.reshape(batch, height // window, window, width // window, window, channels)
        return nn.permute(x, (0, 1, 3, 2, 4, 5)).reshape(-1, window * window, channels)

    def in_images(x, height, width):  # and back
        x = x.reshape(-1, height // window, width // window, window, window, x.shape[-1])
        return nn.permute(x, (0, 1, 3, 2, 4, 5)).reshape(-1, height, width, x.shape[-1])

    def distances():  # [169, 2]: from -6 to 6 down and across, on a logarithmic scale that ends at 4/3 of log 3 / log 2
        steps = (nn.cumsum(ones[: 2 * window - 1], dim=0) - window) * (8 / (window - 1))
        steps = nn.sign(steps) * nn.log(nn.abs(steps) + 1) / 2.0794415416798357  # logarithm to base 8
        length = 2 * window - 1
        down = nn.expand(nn.unsqueeze(steps, 1), (length, length))
        across = nn.expand(nn.unsqueeze(steps, 0), (length, length))
        return nn.stack((down, across), dim=2).reshape(length * length, 2)

    def hidden(size):  # [windows, 1, 49, 49]: -100 where two places were not neighbours before the shift
        places = nn.cumsum(ones[:size], dim=0) - 1
        part = nn.clamp(places - (size - window - 1), min=0, max=1)
        part = part + nn.clamp(places - (size - shift - 1), min=0, max=1)
        parts = in_windows((3 * part[:, None] + part).reshape(1, size, size, 1))
        apart = nn.clamp(nn.abs(nn.transpose(parts, 1, 2) - parts), max=1) * -100
        return nn.unsqueeze(apart, 1)

    def position_bias(table):  # [169, heads] -> [heads, 49, 49]: the entry at the distance of two places
        table = nn.flip(table.reshape(2 * window - 1, 2 * window - 1, -1), (0, 1))
        pairs = nn.unfold(nn.unfold(table, 0, window, 1), 1, window, 1)  # [down, across, heads, down, across]
        pairs = nn.permute(nn.flip(pairs, (0, 1)), (2, 0, 1, 3, 4))
        return pairs.reshape(-1, window * window, window * window)

    def attention(x, heads, mask):  # [windows, 49, C]
        logit_scale, q_bias, v_bias, weight1, bias1, weight2, qkv_weight = [next(left) for _ in range(7)]
        count, places, width = x.shape
        qkv = nn.linear(x, qkv_weight, nn.cat((q_bias, nn.zeros_like(v_bias), v_bias)))
        qkv = nn.permute(qkv.reshape(count, places, 3, heads, width // heads), (2, 0, 3, 1, 4))
        q, k, v = nn.normalize(qkv[0], dim=-1), nn.normalize(qkv[1], dim=-1), qkv[2]
        scores = nn.matmul(q, nn.transpose(k, -2, -1))
        scores = scores * nn.exp(nn.clamp(logit_scale, max=4.605170185988092))  # at most 100
        table = nn.linear(nn.relu(nn.linear(table_input, weight1, bias1)), weight2)
        scores = scores + 16 * nn.sigmoid(position_bias(table))
        if mask is not None:
            scores = scores.reshape(-1, mask.shape[0], heads, places, places) + mask
            scores = scores.reshape(count, heads, places, places)
        x = nn.matmul(nn.softmax(scores, dim=-1), v)
        return linear(nn.transpose(x, 1, 2).reshape(count, places, width))

    def block(x, heads, mask):  # [B, H, W, C]
        height, width = x.shape[1:3]
        norm1 = next(left), next(left)
        y = x if mask is None else nn.roll(x, (-shift, -shift), (1, 2))
        y = in_images(attention(in_windows(y), heads, mask), height, width)
        y = y if mask is None else nn.roll(y, (shift, shift), (1, 2))
        x = x + nn.layer_norm(y, y.shape[-1:], *norm1)
        norm2 = next(left), next(left)
        y = linear(nn.gelu(linear(x)))
        return x + nn.layer_norm(y, y.shape[-1:], *norm2)

    def merged(x):
        x = nn.cat((x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]), dim=-1)
        return norm(nn.linear(x, next(left)))

    table_input = distances()
    x = nn.conv2d(x, next(left), next(left), stride=4)
    x = norm(nn.permute(x, (0, 2, 3, 1)))
    for stage, (depth, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
        mask = hidden(x.shape[1]) if x.shape[1] > window else None
        for at in range(depth):
            x = block(x, heads, mask if at % 2 else None)
        x = merged(x) if stage < 3 else x
    x = nn.flatten(norm(x), start_dim=1, end_dim=2)
    x = nn.flatten(nn.adaptive_avg_pool1d(nn.transpose(x, 1, 2), 1), start_dim=1)
    return linear(x)


def mlp_block(name: str, width: int, heads: int) -> tuple[Array, ...]:
    return (
        *affine(f"{name}.norm1", width),
        *layer(f"{name}.spatial_mlp", (heads * 49, 49, 1)),
        *affine(f"{name}.norm2", width),
        *layer(f"{name}.mlp.fc1", (4 * width, width)),
        *layer(f"{name}.mlp.fc2", (width, 4 * width)),
    )


def attention_block(name: str, width: int, heads: int) -> tuple[Array, ...]:
    return (
        *affine(f"{name}.norm1", width),
        parameter(f"{name}.attn.logit_scale", (heads, 1, 1), "constant(2.30259)"),  # the logarithm of 10
        parameter(f"{name}.attn.q_bias", (width,), "constant(0)"),
        parameter(f"{name}.attn.v_bias", (width,), "constant(0)"),
        *layer(f"{name}.attn.cpb_mlp.0", (HIDDEN, 2)),
        *layer(f"{name}.attn.cpb_mlp.2", (heads, HIDDEN), bias=False),
        *layer(f"{name}.attn.qkv", (3 * width, width), bias=False),
        *layer(f"{name}.attn.proj", (width, width)),
        *affine(f"{name}.norm2", width),
        *layer(f"{name}.mlp.fc1", (4 * width, width)),
        *layer(f"{name}.mlp.fc2", (width, 4 * width)),
    )


def stages(block, width: int, classes: int, merged_norm: int) -> tuple[Array, ...]:
    """Weights of four stages of `block`; the norm where patches are merged is `merged_norm` times as wide as they."""
    arrays = [*layer("patch_embed.proj", (width, 3, 4, 4)), *affine("patch_embed.norm", width)]
    for stage, (depth, heads) in enumerate(zip(DEPTHS, HEADS, strict=True)):
        own = width * 2**stage
        for at in range(depth):
            arrays += block(f"layers.{stage}.blocks.{at}", own, heads)
        if stage < len(DEPTHS) - 1:
            arrays += layer(f"layers.{stage}.downsample.reduction", (2 * own, 4 * own), bias=False)
            arrays += affine(f"layers.{stage}.downsample.norm", merged_norm * own)
    return (*arrays, *affine("norm", 8 * width), *layer("head", (classes, 8 * width)))


def sizes(block, merged_norm: int) -> dict[str, tuple[Array, ...]]:
    """Images are of 224 by 224 everywhere: windows of 7 fit into all four stages of no smaller one."""
    large = stages(block, width=96, classes=1000, merged_norm=merged_norm)
    return {
        "cpu": uniform(x=(1, 3, 224, 224)) + stages(block, width=24, classes=100, merged_norm=merged_norm),
        "kb": uniform(x=(10, 3, 224, 224)) + large,
        "kb_v0": normal(x=(10, 3, 224, 224)) + large,
    }


SWIN_MLP = Task(
    id="3_029",
    name="SwinMLP",
    family="model",
    source=forward_text(swin_mlp),
    sizes=sizes(mlp_block, merged_norm=4),
    precision="tf32",
    notes=("Paths are never dropped: the benchmark has an identity in place of the stochastic depth it declares.",),
)

SWIN_TRANSFORMER = Task(
    id="3_030",
    name="SwinTransformerV2",
    family="model",
    source=forward_text(swin_transformer),
    sizes=sizes(attention_block, merged_norm=2),
    precision="tf32",
    notes=(
        "Paths are never dropped: the benchmark has an identity in place of the stochastic depth it declares.",
        "Distances of places and masks of shifted windows, constants of the model, are computed in the reference.",
    ),
)
