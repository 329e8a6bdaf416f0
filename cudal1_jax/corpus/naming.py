"""Names that tasks give to arrays and programs to kernels."""

from collections.abc import Iterable
from random import Random

from cudal1_jax.corpus.chain import Chain

SHORT = {  # step kind -> word in a kernel's name, where it differs
    "mul_c": "scale",
    "rmul_c": "scale",
    "scale_2": "scale",
    "div_c": "div",
    "add_c": "shift",
    "sub_c": "shift",
    "rsub_c": "rsub",
    "square_mul": "square",
    "square_add": "square",
    "abs_add": "abs",
    "log_abs": "log",
    "sqrt_abs": "sqrt",
    "clamp_min": "clamp",
    "rmul": "mul",
    "radd": "add",
    "softsign_call": "softsign",
    "mish_call": "mish",
    "hardsigmoid_call": "hardsigmoid",
    "hardswish_call": "hardswish",
    "gelu_tanh": "gelu",
    "gelu_written": "gelu",
    "gelu_sigmoid": "gelu",
    "cubic": "poly",
    "square_affine": "poly",
    "tanh_cubic": "tanh",
    "cube_mul": "cube",
    "cube_pow": "cube",
    "square_pow": "square",
    "div_abs": "div",
    "exp_neg_abs": "exp",
}
OPERANDS = {
    "full": ("y", "z", "b", "other", "B", "mask", "u"),
    "row": ("bias", "w", "gamma", "beta", "scale", "weight", "b"),
    "column": ("s", "scale", "A", "a", "row_scale", "d", "factor", "u"),
    "channel": ("bias", "scale", "gamma", "weight", "b"),
    "batch": ("s", "scale", "gate", "factor", "w"),
    "item": ("bias", "position", "w", "weight", "offset"),
    "scalar": ("alpha", "s", "gain", "factor"),
}


def pick_main(rng: Random) -> str:
    return rng.choice(("x", "x", "x", "x", "a", "A", "B", "inputs", "data"))


def operand_names(rng: Random, place: str, taken: Iterable[str]) -> str:
    """A name for an operand that is broadcast as `place` says, other than those taken."""
    taken = {name.lower() for name in taken}
    return rng.choice([name for name in (*OPERANDS[place], "extra", "more") if name.lower() not in taken])


def kernel_name(rng: Random, chain: Chain, kind: str) -> str:
    """A name of one or two words, often made of the chain's first steps."""
    words = [SHORT.get(step.kind.name, step.kind.name) for step in chain.steps][:2]
    if words and rng.random() < 0.6:
        name = "_".join(words)
        return name if name not in RESERVED else f"{name}_kernel"
    return rng.choice((kind, f"{kind}_kernel", "fused", "compute", "run"))


RESERVED = {"abs", "exp", "log", "sqrt", "div", "tanh", "minimum", "maximum", "gamma", "std", "norm"}


def reduction_name(rng: Random, prologue: Chain, fold: str, contiguous: bool) -> str:
    """A name for a kernel that reduces lines."""
    places = ("rows", "row") if contiguous else ("columns", "lines")
    words = [SHORT.get(step.kind.name, step.kind.name) for step in prologue.steps][:1]
    choices = [f"{fold}_{places[0]}", f"{places[1]}_{fold}", f"reduce_{fold}", f"{fold}_kernel"]
    if words:
        choices.append(f"{words[0]}_{fold}")
    return rng.choice(choices)


def row_name(rng: Random, prologue: Chain, kind: str, epilogue: Chain) -> str:
    """A name for a kernel that applies a row-wise function."""
    first = [SHORT.get(step.kind.name, step.kind.name) for step in prologue.steps][:1]
    last = [SHORT.get(step.kind.name, step.kind.name) for step in epilogue.steps][-1:]
    joined = "_".join((*first, kind, *last))
    joined = f"{joined}_rows" if joined in RESERVED else joined
    return rng.choice((f"row_{kind}", f"{kind}_rows", f"{kind}_kernel", joined, joined))


def scan_name(rng: Random, prologue: Chain, kind: str, epilogue: Chain) -> str:
    """A name for a kernel that scans lines."""
    return rng.choice((f"row_{kind}", f"{kind}_kernel", f"scan_{kind}", row_name(rng, prologue, kind, epilogue)))


def total_name(rng: Random, name: str, fold: str) -> str:
    """A name for a kernel that reduces everything."""
    first = f"{fold}_all" if name == "total" else name
    return rng.choice(
        (first, first, f"{fold}_kernel", "reduce", "partial_sums" if fold in ("sum", "mean") else "reduce")
    )


def product_name(rng: Random, name: str, epilogue: Chain) -> str:
    """A name for a kernel of a matrix product."""
    base = name.split("_")[0]
    words = [SHORT.get(step.kind.name, step.kind.name) for step in epilogue.steps][:2]
    choices = [base, f"{base}_kernel", "gemm" if base == "matmul" else "batched_matmul"]
    if words:
        choices += ["_".join((base, *words))] * 2
    return rng.choice(choices)
