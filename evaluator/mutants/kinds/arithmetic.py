"""Faults of arithmetic: operators, operands, terms and factors, constants, calls."""

from collections.abc import Iterator

from evaluator.mutants import syntax
from evaluator.mutants.program import Edit, Program

_SMALL = 1e-3  # a literal up to here is taken for an epsilon
_HUGE = 1e30  # one from here on stands for infinity


def plus_to_minus(p: Program) -> Iterator[Edit]:
    """`a + b` becomes `a - b`, `a += b` becomes `a -= b`."""
    for i in syntax.binary(p, "+", "+="):
        yield p.edit(i, i + 1, p.word(i).replace("+", "-"))


def minus_to_plus(p: Program) -> Iterator[Edit]:
    """`a - b` becomes `a + b`, `a -= b` becomes `a += b`."""
    for i in syntax.binary(p, "-", "-="):
        yield p.edit(i, i + 1, p.word(i).replace("-", "+"))


def operands_swapped(p: Program) -> Iterator[Edit]:
    """`a - b` becomes `b - a`, `a / b` becomes `b / a`, for floating numbers."""
    names = syntax.floating_names(p)
    for i in syntax.binary(p, "-", "/"):
        left = syntax.term_start(p, i - 1)
        right = syntax.term_end(p, i + 1) if p.word(i) == "-" else syntax.primary_end(p, i + 1)
        if syntax.is_floating(p, left, right, names):
            yield p.edit(left, right, f"{p.cuda(i + 1, right)} {p.word(i)} ({p.cuda(left, i)})")


def term_dropped(p: Program) -> Iterator[Edit]:
    """`a + b` becomes `a`, `a - b` becomes `a`."""
    for i in syntax.binary(p, "+", "-"):
        yield p.edit(i, syntax.term_end(p, i + 1), "")


def factor_dropped(p: Program) -> Iterator[Edit]:
    """`a * b` and `a / b` become `a`, for floating numbers."""
    names = syntax.floating_names(p)
    for i in syntax.binary(p, "*", "/"):
        end = syntax.primary_end(p, i + 1)
        if syntax.is_floating(p, syntax.primary_start(p, i - 1), end, names):
            yield p.edit(i, end, "")


def divisor_off_by_one(p: Program) -> Iterator[Edit]:
    """`sum / n` becomes `sum / (n - 1)`, as between the variance of a sample and that of a population."""
    names = syntax.floating_names(p)
    for i in syntax.binary(p, "/"):
        end = syntax.primary_end(p, i + 1)
        left = syntax.primary_start(p, i - 1)
        if syntax.is_floating(p, left, i, names) and not syntax.is_floating(p, i + 1, end, names):
            yield p.edit(i + 1, end, f"({p.cuda(i + 1, end)} - 1)")


def constant_off_by_one_percent(p: Program) -> Iterator[Edit]:
    """A floating literal is multiplied by 1.01."""
    for i, spot in enumerate(p.spots):
        value = syntax.float_value(spot.text)
        if value is not None and _SMALL < value < _HUGE:
            yield p.edit(i, i + 1, _literal(1.01 * value, spot.text))


def epsilon_changed(p: Program) -> Iterator[Edit]:
    """A literal of at most 1e-3 becomes ten times as large."""
    for i, spot in enumerate(p.spots):
        value = syntax.float_value(spot.text)
        if value is not None and 0.0 < value <= _SMALL:
            yield p.edit(i, i + 1, _literal(10 * value, spot.text))


def _literal(value: float, like: str) -> str:
    """`value` as a literal of the type of `like`."""
    shown = f"{value:.9g}"
    point = "" if "." in shown or "e" in shown else ".0"
    return shown + point + ("f" if like[-1] in "fF" else "")


def extremum_without_nan_rule(p: Program) -> Iterator[Edit]:
    """`fmaxf(a, b)` becomes `a > b ? a : b`, which takes the other side where one is NaN."""
    for name, arguments in syntax.calls(p, "fmaxf", "fminf"):
        if len(arguments) == 2:
            a, b = (p.cuda(*each) for each in arguments)
            sign = ">" if p.word(name) == "fmaxf" else "<"
            yield p.edit(name, p.partner[name + 1] + 1, f"(({a}) {sign} ({b}) ? ({a}) : ({b}))")


def extremum_swapped(p: Program) -> Iterator[Edit]:
    """A minimum is taken for a maximum, and the other way round."""
    other = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max"}
    for name, _ in syntax.calls(p, *other):
        yield p.edit(name, name + 1, other[p.word(name)])


def clamp_dropped(p: Program) -> Iterator[Edit]:
    """`min(a, b)` becomes `a`: the last piece is taken to be whole, a value unbounded."""
    for name, arguments in syntax.calls(p, "fmaxf", "fminf", "max", "min"):
        if len(arguments) == 2:
            yield p.edit(name, p.partner[name + 1] + 1, f"({p.cuda(*arguments[0])})")


def call_dropped(p: Program) -> Iterator[Edit]:
    """`fabsf(x)`, `sqrtf(x)` and the like become `x`."""
    for name, arguments in syntax.calls(p, "fabsf", "sqrtf", "rsqrtf", "tanhf", "logf", "log1pf"):
        if len(arguments) == 1:
            yield p.edit(name, p.partner[name + 1] + 1, f"({p.cuda(*arguments[0])})")


def maximum_not_subtracted(p: Program) -> Iterator[Edit]:
    """`expf(x - top)` becomes `expf(x)`, which overflows where x is large."""
    for _, arguments in syntax.calls(p, "expf", "__expf", "exp2f"):
        first, behind = arguments[0]
        for i in syntax.binary(p, "-"):
            if first < i < behind and syntax.term_end(p, i + 1) == behind:
                yield p.edit(i, behind, "")
