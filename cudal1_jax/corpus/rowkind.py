"""Row-wise functions as data: their text in `nn`, their statistics, and what is written from them."""

import dataclasses
from random import Random

from cudal1_jax.corpus import layout


@dataclasses.dataclass(frozen=True)
class Pass:
    """One statistic of a line: `{a}` accumulator, `{v}` element; `{n}` and `{eps}` in the finish."""

    name: str
    start: str
    update: str
    combine: str  # helper that combines partial results of threads
    finish: str = ""  # statement after the loop that replaces the accumulator, which stands in it once on the right


@dataclasses.dataclass(frozen=True)
class SinglePass:
    """All statistics in one pass; `{k}` is the position. Only for a thread that takes the line alone."""

    technique: str
    starts: tuple[str, ...]
    updates: tuple[str, ...]
    finish: tuple[str, ...] = ()


Text = tuple[tuple[str, bool], ...]  # templates of `nn` text, each with whether it is an infix expression


@dataclasses.dataclass(frozen=True)
class RowKind:
    """A function of a whole line that gives one value per element."""

    name: str
    texts: tuple[Text, ...]  # alternative ways to write it
    passes: tuple[Pass, ...]
    final: str  # expression of `{v}` and the statistics
    bottlenecks: tuple[str, ...]
    single_pass: SinglePass | None = None
    affine: str = ""  # "", "optional" or "required": weight of the shape of a line
    bias: bool = False  # the affine form has a bias as well
    gives: frozenset[str] = frozenset()
    images: bool = False  # over everything after the channel, and only that
    reduces: bool = False  # gives one value per line: `final` is an expression of the statistics alone
    weight: int = 2

    @property
    def centred(self) -> bool:
        """Whether a mean is taken off the values."""
        return any(item.name == "mean" for item in self.passes)

    @property
    def online(self) -> bool:
        """Whether maximum and sum of exponentials can be found together."""
        return self.single_pass is not None and self.single_pass.technique == ONLINE.technique

    @property
    def longest(self) -> int:
        """The longest line that one thread may take alone."""
        return layout.LONGEST_MEAN if self.centred else layout.LONGEST_SUM

    def nn(self, rng: Random) -> Text:
        return rng.choice(self.texts)


BEST = Pass("best", "-3e38f", "{a} = fmaxf({a}, {v});", "all_max")
EXPONENTIALS = Pass("total", "0.0f", "{a} += expf({v} - best);", "all_sum")
ONLINE = SinglePass(
    technique="online softmax",
    starts=("float best = -3e38f, total = 0.0f;",),
    updates=("float next = fmaxf(best, {v});", "total = total * expf(best - next) + expf({v} - next);", "best = next;"),
)
MEAN = Pass("mean", "0.0f", "{a} += {v};", "all_sum", "mean = mean / {n};")
WELFORD = SinglePass(
    technique="Welford variance",
    starts=("float mean = 0.0f, rstd = 0.0f;",),
    updates=("float delta = {v} - mean;", "mean += delta / ({k} + 1);", "rstd += delta * ({v} - mean);"),
    finish=("rstd = rsqrtf(rstd / {n} + {eps});",),
)
DEVIATIONS = Pass(
    "rstd", "0.0f", "{a} += ({v} - mean) * ({v} - mean);", "all_sum", "rstd = rsqrtf(rstd / {n} + {eps});"
)
SQUARED_DEVIATIONS = Pass("spread", "0.0f", "{a} += ({v} - mean) * ({v} - mean);", "all_sum")
WELFORD_SUM = SinglePass(
    technique="Welford variance",
    starts=("float mean = 0.0f, spread = 0.0f;",),
    updates=("float delta = {v} - mean;", "mean += delta / ({k} + 1);", "spread += delta * ({v} - mean);"),
)
SOFTMAX_COST = (
    "Each row needs its maximum and its sum of exponentials before any output; expf and passes over the row decide.",
    "The row is read once per statistic and once to write; fewer passes and fewer expf calls are what can be won.",
)
NORM_COST = (
    "Each row needs its statistics before any output, so the row is read several times; passes and combining decide.",
    "Mean and variance come before the first output: the cost is passes over the row and combining partial sums.",
)
SUM_COST = (
    "One statistic per row, then one pass that writes: two reads and one write per element.",
    "The row is read twice, once for its statistic and once to scale it; combining partial sums is the overhead.",
)
SQUARES = Pass("total", "0.0f", "{a} += {v} * {v};", "all_sum")
NORM = dataclasses.replace(SQUARES, name="norm", finish="norm = sqrtf(norm);")
# What divides and what multiplies have names of their own, so that they are not mistaken for each other.
MEAN_SQUARE = dataclasses.replace(SQUARES, name="rrms", finish="rrms = rsqrtf(rrms / {n} + {eps});")
BOUNDED = frozenset({"bounded"})
CENTRED = "{v} - nn.mean({v}, {dim}, keepdim=True)"

KINDS = (
    RowKind(
        "softmax", ((("nn.softmax({v}, {dim})", False),),), (BEST, EXPONENTIALS), "expf({v} - best) / total",
        SOFTMAX_COST, ONLINE, gives=BOUNDED, weight=6,
    ),
    RowKind(
        "log_softmax", ((("nn.log_softmax({v}, {dim})", False),),),
        (BEST, dataclasses.replace(EXPONENTIALS, finish="total = logf(total);")), "{v} - best - total",
        SOFTMAX_COST, dataclasses.replace(ONLINE, finish=("total = logf(total);",)), weight=4,
    ),
    RowKind(
        "layer_norm", ((("nn.layer_norm({v}, {shape}{affine}, eps={eps})", False),),),
        (MEAN, DEVIATIONS),
        "({v} - mean) * rstd", NORM_COST, WELFORD, affine="optional", bias=True, weight=10,
    ),
    RowKind(
        "standardise",
        (
            ((f"({CENTRED}) / nn.sqrt(nn.var({{v}}, {{dim}}, correction=0, keepdim=True) + {{eps}})", True),),
            ((CENTRED, True), ("{v} / nn.sqrt(nn.mean({v} * {v}, {dim}, keepdim=True) + {eps})", True)),
        ),
        (MEAN, DEVIATIONS),
        "({v} - mean) * rstd", NORM_COST, WELFORD,
    ),
    RowKind(
        "rms_norm",
        (
            (("{v} / nn.sqrt(nn.mean({v}**2, {dim}, keepdim=True) + {eps})", True),),
            (("{v} / nn.sqrt(nn.mean({v} * {v}, {dim}, keepdim=True) + {eps})", True),),
            (("rms = nn.sqrt(nn.mean({v} ** 2, {dim}, keepdim=True) + {eps})", False), ("{v} / rms", True)),
            (("rms = nn.sqrt(nn.mean({v} * {v}, {dim}, keepdim=True) + {eps})", False), ("{v} / rms", True)),
        ),
        (MEAN_SQUARE,), "{v} * rrms", SUM_COST,
        weight=6,
    ),
    RowKind(
        "rms_norm_weight", ((("nn.rms_norm({v}, {shape}{affine}, eps={eps})", False),),),
        (MEAN_SQUARE,), "{v} * rrms", SUM_COST,
        affine="required", weight=3,
    ),
    RowKind(
        "l2_normalize",
        (
            (("{v} / (nn.norm({v}, p=2, {dim}, keepdim=True) + {eps})", True),),
            (("{v} / (nn.sqrt(nn.sum({v} * {v}, {dim}, keepdim=True)) + {eps})", True),),
            (("norm = nn.norm({v}, p=2, {dim}, keepdim=True)", False), ("{v} / (norm + {eps})", True)),
        ),
        (dataclasses.replace(NORM, finish="norm = sqrtf(norm) + {eps};"),), "{v} / norm", SUM_COST, gives=BOUNDED,
        weight=3,
    ),
    RowKind(
        "l2_unit",
        (
            (("{v} / nn.norm({v}, p=2, {dim}, keepdim=True)", True),),
            (("{v} / nn.sqrt(nn.sum({v} ** 2, {dim}, keepdim=True))", True),),
            (("norm = nn.norm({v}, p=2, {dim}, keepdim=True)", False), ("{v} / norm", True)),
        ),
        (NORM,), "{v} / norm", SUM_COST, gives=BOUNDED,
        weight=4,
    ),
    RowKind(
        "l1_unit", ((("{v} / nn.sum(nn.abs({v}), {dim}, keepdim=True)", True),),),
        (Pass("total", "0.0f", "{a} += fabsf({v});", "all_sum"),), "{v} / total", SUM_COST,
        gives=BOUNDED,
    ),
    RowKind(
        "l1_normalize", ((("{v} / (nn.sum(nn.abs({v}), {dim}, keepdim=True) + {eps})", True),),),
        (Pass("total", "0.0f", "{a} += fabsf({v});", "all_sum", "total = total + {eps};"),), "{v} / total", SUM_COST,
        gives=BOUNDED,
    ),
    RowKind(
        "centre", (((CENTRED, True),),), (MEAN,), "{v} - mean", SUM_COST,
    ),
    RowKind(
        "minus_max",
        ((("{v} - nn.max({v}, {dim}, keepdim=True)", True),), (("{v} - nn.amax({v}, {dim}, keepdim=True)", True),)),
        (BEST,), "{v} - best", SUM_COST, weight=1,
    ),
    RowKind(
        "instance_norm", ((("nn.instance_norm({v}, eps={eps})", False),),), (MEAN, DEVIATIONS), "({v} - mean) * rstd",
        NORM_COST, WELFORD, images=True,
    ),
    RowKind(
        "logsumexp", ((("nn.logsumexp({v}, {dim}{keepdim})", False),),),
        (BEST, dataclasses.replace(EXPONENTIALS, finish="total = logf(total);")), "best + total", SOFTMAX_COST,
        dataclasses.replace(ONLINE, finish=("total = logf(total);",)), reduces=True, weight=3,
    ),
    RowKind(
        "var", ((("nn.var({v}, {dim}, correction=0{keepdim})", False),),), (MEAN, SQUARED_DEVIATIONS), "spread / {n}",
        NORM_COST, WELFORD_SUM, reduces=True,
    ),
    RowKind(
        "std", ((("nn.std({v}, {dim}, correction=0{keepdim})", False),),), (MEAN, SQUARED_DEVIATIONS),
        "sqrtf(spread / {n})", NORM_COST, WELFORD_SUM, reduces=True,
    ),
)  # fmt: skip
