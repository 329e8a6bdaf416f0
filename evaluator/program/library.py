"""Shapes of library steps, the same for whoever records a step and whoever reads one. Imports nothing of either."""

Lengths = tuple[int, ...]

MAX_LENGTH = 1 << 20  # of a stride, padding and so on, and of groups


def conv_shape(
    x: Lengths,
    weight: Lengths,
    *,
    stride: Lengths,
    padding: Lengths,
    dilation: Lengths,
    output_padding: Lengths,
    groups: int,
    transposed: bool,
) -> Lengths:
    """Shape of a convolution's result, as PyTorch defines it. ValueError where the operands do not fit.

    x is [batch, channels, lengths ...], one to three of them; weight is [out, channels / groups, windows ...], or
    [channels, out / groups, windows ...] for a transposed one.
    """
    ndim = len(x) - 2
    if not 1 <= ndim <= 3 or len(weight) != len(x):
        raise ValueError(f"conv: shapes {x} and {weight}, expected both of 3, 4 or 5 dimensions")
    _check_lengths(ndim, stride=stride, padding=padding, dilation=dilation, output_padding=output_padding)
    if type(groups) is not int or not 1 <= groups <= MAX_LENGTH:
        raise ValueError(f"conv: groups is {groups!r}, expected an integer from 1 to {MAX_LENGTH}")
    channels = weight[0] if transposed else weight[1] * groups
    if weight[0] % groups or x[1] != channels:
        raise ValueError(f"conv: {x[1]} channels and a weight of shape {weight} do not fit with {groups} groups")
    sizes = []
    for n, w, s, p, d, e in zip(x[2:], weight[2:], stride, padding, dilation, output_padding, strict=True):
        reach = d * (w - 1)
        size = (n - 1) * s - 2 * p + reach + 1 + e if transposed else (n + 2 * p - reach - 1) // s + 1
        if w < 1 or size < 1 or (not transposed and n + 2 * p <= reach):
            raise ValueError(f"conv: a window of {w} with dilation {d} does not fit {n} elements padded by {p}")
        if transposed and e >= max(s, d):
            raise ValueError(f"conv: output_padding {e} must be smaller than stride {s} or dilation {d}")
        if not transposed and e:
            raise ValueError("conv: output_padding is for transposed convolutions")
        sizes.append(size)
    return (x[0], weight[1] * groups if transposed else weight[0], *sizes)


def attention_shape(query: Lengths, key: Lengths, value: Lengths) -> Lengths:
    """Shape of attention over [..., tokens, width]. ValueError where the operands do not fit."""
    fits = (
        min(len(query), len(key), len(value)) >= 2
        and query[:-2] == key[:-2] == value[:-2]
        and query[-1] == key[-1]
        and key[-2] == value[-2]
        and min(key[-2], query[-1]) > 0
    )
    if not fits:
        shapes = f"{query}, {key} and {value}"
        raise ValueError(f"attention: shapes {shapes}; expected [..., T, d], [..., S, d] and [..., S, v]")
    return (*query[:-1], value[-1])


def _check_lengths(ndim: int, **named: Lengths) -> None:
    for name, lengths in named.items():
        least = 1 if name in ("stride", "dilation") else 0
        if len(lengths) != ndim or any(type(n) is not int or not least <= n <= MAX_LENGTH for n in lengths):
            raise ValueError(f"conv: {name} is {lengths}, expected {ndim} integers from {least} to {MAX_LENGTH}")
