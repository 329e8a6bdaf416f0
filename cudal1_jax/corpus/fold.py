"""Folds: how a line of values becomes one, in `nn` and in CUDA."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fold:
    """A reduction with an associative merge. `{a}` is the accumulator, `{v}` a value, `{n}` the length of the line."""

    name: str
    nn: str  # with {v}, {dim} ("dim=1") and {keepdim} (", keepdim=True" or "")
    start: str
    merge: str  # statement that merges {v} into {a}
    element: str = "{v}"  # what is folded of each value
    finish: str = "{a}"
    variable: str = "total"
    infix: bool = False
    exact: bool = False  # the result is one of the values
    gives: frozenset[str] = frozenset()
    weight: int = 2

    def update(self, accumulator: str, value: str) -> str:
        """CUDA statement that folds one value in; `value` must be a name unless the element uses it once."""
        return self.merge.format(a=accumulator, v=self.element.format(v=value))

    def merged(self, accumulator: str, other: str) -> str:
        return self.merge.format(a=accumulator, v=other)

    def finished(self, accumulator: str, length: str) -> str:
        return self.finish.format(a=accumulator, n=length)

    @property
    def uses_value_twice(self) -> bool:
        return self.element.count("{v}") > 1


SUM, MAX, MIN, PRODUCT = (
    "{a} += {v};",
    "{a} = fmaxf({a}, {v});",
    "{a} = fminf({a}, {v});",
    "{a} *= {v};",
)
FOLDS = (
    Fold("sum", "nn.sum({v}, {dim}{keepdim})", "0.0f", SUM, weight=6),
    Fold("mean", "nn.mean({v}, {dim}{keepdim})", "0.0f", SUM, finish="{a} / {n}", weight=4),
    Fold("max", "nn.max({v}, {dim}{keepdim})", "-3e38f", MAX, variable="best", exact=True, weight=3),
    Fold("min", "nn.min({v}, {dim}{keepdim})", "3e38f", MIN, variable="best", exact=True, weight=3),
    Fold("amax", "nn.amax({v}, {dim}{keepdim})", "-3e38f", MAX, variable="best", exact=True, weight=2),
    Fold("amin", "nn.amin({v}, {dim}{keepdim})", "3e38f", MIN, variable="best", exact=True, weight=1),
    Fold("l1", "nn.sum(nn.abs({v}), {dim}{keepdim})", "0.0f", SUM, "fabsf({v})", weight=2),
    Fold("square_sum", "nn.sum({v} ** 2, {dim}{keepdim})", "0.0f", SUM, "{v} * {v}", weight=2),
    Fold("mean_square", "nn.mean({v} * {v}, {dim}{keepdim})", "0.0f", SUM, "{v} * {v}", "{a} / {n}", weight=1),
    Fold("l2", "nn.sqrt(nn.sum({v} * {v}, {dim}{keepdim}))", "0.0f", SUM, "{v} * {v}", "sqrtf({a})", weight=2),
    Fold("norm", "nn.norm({v}, p=2, {dim}{keepdim})", "0.0f", SUM, "{v} * {v}", "sqrtf({a})", weight=2),
    Fold("rms", "nn.sqrt(nn.mean({v} ** 2, {dim}{keepdim}))", "0.0f", SUM, "{v} * {v}", "sqrtf({a} / {n})", weight=1),
)
BY_NAME = {fold.name: fold for fold in FOLDS}
