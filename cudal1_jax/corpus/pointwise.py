"""Elementwise steps: how each is written in the `nn` namespace and in CUDA, and which values it is safe on."""

import dataclasses
from collections.abc import Sequence
from random import Random

# What is known of a value: "bounded" (exp cannot overflow), "positive" (log, sqrt and division are safe).
Known = frozenset[str]


@dataclasses.dataclass(frozen=True)
class Kind:
    """One elementwise operation. `{v}` is the running value, `{y}` an operand, `{c}`, `{d}` constants of the task."""

    name: str
    nn: str
    cuda: str
    infix: bool = False  # the nn text needs parentheses when it becomes part of a larger expression
    constants: str = ""  # name of a list in CONSTANTS, one letter per constant
    needs: Known = frozenset()
    gives: Known = frozenset()
    keeps: bool = False  # a bounded value stays bounded
    exact: bool = False  # never rounds, so that ties and the place of a maximum are those of exact arithmetic
    weight: int = 2


CONSTANTS = {  # a word per constant, as often as it is to be drawn
    "f": tuple(
        "0.5 2.0 1.5 3.0 0.25 0.1 0.75 1.25 4.0 0.3 0.8 1.2 2.5 0.05 1.0 0.7 0.2 5.0 0.01 6.0 2 3 4 1 10".split()  # noqa: SIM905
    ),
    "s": ("0.01", "0.1", "0.2", "0.05", "0.02", "0.3", "0.25", "0.15"),
    "e": ("0.5", "2.0", "4.0", "0.25"),  # powers of two: multiplying by them is exact
}
BOUNDED, POSITIVE = frozenset({"bounded"}), frozenset({"positive"})

UNARY = (
    Kind("relu", "nn.relu({v})", "fmaxf({v}, 0.0f)", keeps=True, exact=True, weight=7),
    Kind(
        "leaky_relu",
        "nn.leaky_relu({v}, negative_slope={c})",
        "{v} > 0.0f ? {v} : {c} * {v}",
        False,
        "s",
        keeps=True,
        weight=3,
    ),
    Kind("sigmoid", "nn.sigmoid({v})", "1.0f / (1.0f + expf(-{v}))", gives=BOUNDED, weight=4),
    Kind("tanh", "nn.tanh({v})", "tanhf({v})", gives=BOUNDED, weight=4),
    Kind("gelu", "nn.gelu({v})", "0.5f * {v} * (1.0f + erff({v} * 0.70710678f))", keeps=True, weight=7),
    Kind("silu", "nn.silu({v})", "{v} / (1.0f + expf(-{v}))", keeps=True, weight=3),
    Kind("softplus", "nn.softplus({v})", "fmaxf({v}, 0.0f) + log1pf(expf(-fabsf({v})))", keeps=True, weight=3),
    Kind("elu", "nn.elu({v}, alpha={c})", "{v} > 0.0f ? {v} : {c} * expm1f({v})", False, "f", keeps=True),
    Kind(
        "hardtanh",
        "nn.hardtanh({v}, min_val=-{c}, max_val={c})",
        "fminf(fmaxf({v}, -{c}), {c})",
        False,
        "f",
        gives=BOUNDED,
        exact=True,
    ),
    Kind(
        "clamp",
        "nn.clamp({v}, min=-{c}, max={d})",
        "fminf(fmaxf({v}, -{c}), {d})",
        False,
        "ff",
        gives=BOUNDED,
        exact=True,
    ),
    Kind(
        "clamp_min",
        "nn.clamp({v}, min={c})",
        "fmaxf({v}, {c})",
        False,
        "f",
        gives=POSITIVE,
        keeps=True,
        exact=True,
        weight=1,
    ),
    Kind("softsign", "{v} / (1.0 + nn.abs({v}))", "{v} / (1.0f + fabsf({v}))", True, gives=BOUNDED),
    Kind(
        "mish",
        "{v} * nn.tanh(nn.softplus({v}))",
        "{v} * tanhf(fmaxf({v}, 0.0f) + log1pf(expf(-fabsf({v}))))",
        True,
        keeps=True,
    ),
    Kind(
        "hardsigmoid",
        "nn.clamp({v} + 3.0, min=0.0, max=6.0) / 6.0",
        "fminf(fmaxf({v} + 3.0f, 0.0f), 6.0f) / 6.0f",
        True,
        gives=BOUNDED,
    ),
    Kind(
        "hardswish",
        "{v} * nn.clamp({v} + 3.0, min=0.0, max=6.0) / 6.0",
        "{v} * fminf(fmaxf({v} + 3.0f, 0.0f), 6.0f) / 6.0f",
        True,
        keeps=True,
        weight=1,
    ),
    Kind("softsign_call", "nn.softsign({v})", "{v} / (1.0f + fabsf({v}))", gives=BOUNDED, weight=1),
    Kind("swish", "{v} * nn.sigmoid({v})", "{v} / (1.0f + expf(-{v}))", True, keeps=True),
    Kind(
        "mish_call",
        "nn.mish({v})",
        "{v} * tanhf(fmaxf({v}, 0.0f) + log1pf(expf(-fabsf({v}))))",
        keeps=True,
        weight=1,
    ),
    Kind("hardsigmoid_call", "nn.hardsigmoid({v})", "fminf(fmaxf({v} + 3.0f, 0.0f), 6.0f) / 6.0f", gives=BOUNDED),
    Kind("hardswish_call", "nn.hardswish({v})", "{v} * fminf(fmaxf({v} + 3.0f, 0.0f), 6.0f) / 6.0f", keeps=True),
    Kind("relu6", "nn.relu6({v})", "fminf(fmaxf({v}, 0.0f), 6.0f)", gives=BOUNDED, exact=True),
    Kind("selu", "nn.selu({v})", "1.05070099f * ({v} > 0.0f ? {v} : 1.67326324f * expm1f({v}))", keeps=True),
    Kind("logsigmoid", "nn.logsigmoid({v})", "fminf({v}, 0.0f) - log1pf(expf(-fabsf({v})))", keeps=True, weight=1),
    Kind(
        "gelu_tanh",
        'nn.gelu({v}, approximate="tanh")',
        "0.5f * {v} * (1.0f + tanhf(0.79788456f * ({v} + 0.044715f * {v} * {v} * {v})))",
        keeps=True,
    ),
    Kind(
        "gelu_written",
        "0.5 * {v} * (1.0 + nn.tanh(0.79788456 * ({v} + 0.044715 * {v} ** 3)))",
        "0.5f * {v} * (1.0f + tanhf(0.79788456f * ({v} + 0.044715f * {v} * {v} * {v})))",
        True,
        keeps=True,
        weight=4,
    ),
    Kind("gelu_sigmoid", "{v} * nn.sigmoid(1.702 * {v})", "{v} / (1.0f + expf(-1.702f * {v}))", True, keeps=True),
    Kind("cubic", "{v} + {c} * {v} ** 3", "{v} + {c} * {v} * {v} * {v}", True, "s", weight=2),
    Kind(
        "tanh_cubic",
        "nn.tanh({c} * ({v} + {d} * {v} ** 3))",
        "tanhf({c} * ({v} + {d} * {v} * {v} * {v}))",
        False,
        "fs",
        gives=BOUNDED,
        weight=3,
    ),
    Kind("cube", "{v} ** 3", "{v} * {v} * {v}", True, weight=1),
    Kind("cube_mul", "{v} * {v} * {v}", "{v} * {v} * {v}", True, weight=1),
    Kind("cube_pow", "nn.pow({v}, 3)", "{v} * {v} * {v}", weight=1),
    Kind("square_pow", "nn.pow({v}, 2)", "{v} * {v}", keeps=True, weight=1),
    Kind("square_affine", "{c} * {v} ** 2 + {d}", "{c} * {v} * {v} + {d}", True, "ff", gives=POSITIVE, keeps=True),
    Kind("abs", "nn.abs({v})", "fabsf({v})", keeps=True, exact=True, weight=3),
    Kind("neg", "-{v}", "-{v}", True, keeps=True, exact=True),
    Kind("square", "{v} ** 2", "{v} * {v}", True, keeps=True),
    Kind("square_mul", "{v} * {v}", "{v} * {v}", True, keeps=True),
    Kind("exp", "nn.exp({v})", "expf({v})", needs=BOUNDED, gives=POSITIVE, keeps=True, weight=4),
    Kind("gaussian", "nn.exp(-{v} * {v})", "expf(-{v} * {v})", gives=BOUNDED, weight=1),
    Kind("exp_neg_abs", "nn.exp(-nn.abs({v}))", "expf(-fabsf({v}))", gives=BOUNDED, weight=1),
    Kind("log", "nn.log({v})", "logf({v})", needs=POSITIVE, weight=6),
    Kind("log_abs", "nn.log(nn.abs({v}) + {c})", "logf(fabsf({v}) + {c})", False, "f", weight=1),
    Kind("sqrt", "nn.sqrt({v})", "sqrtf({v})", needs=POSITIVE, gives=POSITIVE, keeps=True, weight=6),
    Kind(
        "sqrt_abs",
        "nn.sqrt(nn.abs({v}) + {c})",
        "sqrtf(fabsf({v}) + {c})",
        False,
        "f",
        gives=POSITIVE,
        keeps=True,
        weight=1,
    ),
    Kind("abs_add", "nn.abs({v}) + {c}", "fabsf({v}) + {c}", True, "f", gives=POSITIVE, keeps=True),
    Kind("square_add", "{v} * {v} + {c}", "{v} * {v} + {c}", True, "f", gives=POSITIVE, keeps=True, weight=1),
    Kind("reciprocal", "1.0 / {v}", "1.0f / {v}", True, needs=POSITIVE, gives=BOUNDED, weight=3),
    Kind("add_c", "{v} + {c}", "{v} + {c}", True, "f", keeps=True, weight=5),
    Kind("sub_c", "{v} - {c}", "{v} - {c}", True, "f", keeps=True, weight=3),
    Kind("rsub_c", "{c} - {v}", "{c} - {v}", True, "f", keeps=True),
    Kind("mul_c", "{v} * {c}", "{v} * {c}", True, "f", keeps=True, weight=7),
    Kind("rmul_c", "{c} * {v}", "{c} * {v}", True, "f", keeps=True, weight=3),
    Kind("div_c", "{v} / {c}", "{v} / {c}", True, "f", keeps=True, weight=5),
    Kind("scale_2", "{v} * {c}", "{v} * {c}", True, "e", keeps=True, exact=True, weight=1),
)
BINARY = (
    Kind("add", "{v} + {y}", "{v} + {y}", True, weight=6),
    Kind("sub", "{v} - {y}", "{v} - {y}", True, weight=3),
    Kind("rsub", "{y} - {v}", "{y} - {v}", True, weight=2),
    Kind("radd", "{y} + {v}", "{y} + {v}", True, weight=3),
    Kind("mul", "{v} * {y}", "{v} * {y}", True, weight=7),
    Kind("rmul", "{y} * {v}", "{y} * {v}", True, weight=3),
    Kind("maximum", "nn.maximum({v}, {y})", "fmaxf({v}, {y})", exact=True, weight=2),
    Kind("minimum", "nn.minimum({v}, {y})", "fminf({v}, {y})", exact=True, weight=2),
    Kind("div_abs", "{v} / (nn.abs({y}) + {c})", "{v} / (fabsf({y}) + {c})", True, "f", weight=2),
)


@dataclasses.dataclass(frozen=True)
class Step:
    """A kind with its constants drawn and, where it has one, the name of its operand."""

    kind: Kind
    constants: tuple[str, ...] = ()
    operand: str | None = None  # name of an input of the task; the main input's name = the value before the chain
    named: tuple[str, ...] = ()  # in CUDA, the constants' names where they are arguments of the kernel

    def nn(self, value: str, operand: str | None = None) -> str:
        """The step's text in the `nn` namespace, applied to `value`."""
        return _filled(self.kind.nn, value, operand or self.operand, self.constants)

    def cuda(self, value: str, operand: str | None = None) -> str:
        """The step's CUDA expression of `value`, which must be a name, an index expression or a call."""
        constants = self.named or tuple(map(literal, self.constants))
        return _filled(self.kind.cuda, value, operand, constants)

    @property
    def uses_value_twice(self) -> bool:
        return self.kind.cuda.count("{v}") > 1


def _filled(template: str, value: str, operand: str | None, constants: tuple[str, ...]) -> str:
    return template.format(v=value, y=operand, **dict(zip("cd", constants, strict=False)))


def literal(constant: str) -> str:
    """A constant of a task as a float literal of CUDA."""
    return f"{constant}f" if "." in constant else f"{constant}.0f"


def unary(rng: Random, known: Known, exact: bool = False) -> Step:
    """A step of one value that is safe on what is known of it."""
    kinds = [kind for kind in UNARY if kind.needs <= known and (kind.exact or not exact)]
    return with_constants(rng, choose(rng, kinds))


def binary(rng: Random, operand: str, exact: bool = False) -> Step:
    """A step that combines the value with `operand`."""
    kind = choose(rng, [kind for kind in BINARY if kind.exact or not exact])
    return dataclasses.replace(with_constants(rng, kind), operand=operand)


def after(step: Step, known: Known) -> Known:
    """What is known of a value once `step` has been applied to it."""
    kept = known & BOUNDED if step.kind.keeps else frozenset()
    return step.kind.gives | kept


def with_constants(rng: Random, kind: Kind) -> Step:
    return Step(kind, tuple(rng.choice(CONSTANTS[letter]) for letter in kind.constants))


def choose(rng: Random, kinds: Sequence[Kind]) -> Kind:
    return rng.choices(kinds, [kind.weight for kind in kinds])[0]
