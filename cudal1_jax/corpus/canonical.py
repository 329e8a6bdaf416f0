"""When two tasks are the same: step lists in a normal form, and the real tasks that no example may repeat."""

from cudal1_jax.corpus.workload import Workload
from evaluator.tasks import split

SAME = {  # a step or fold -> the steps that mean the same whatever their constants are
    "mul_c": ("scale",),
    "rmul_c": ("scale",),
    "scale_2": ("scale",),
    "div_c": ("scale",),
    "add_c": ("shift",),
    "sub_c": ("shift",),
    "square_mul": ("square",),
    "square_add": ("square", "shift"),
    "abs_add": ("abs", "shift"),
    "sqrt_abs": ("abs", "shift", "sqrt"),
    "log_abs": ("abs", "shift", "log"),
    "rmul": ("mul",),
    "radd": ("add",),
    "softsign_call": ("softsign",),
    "swish": ("silu",),
    "mish_call": ("mish",),
    "hardsigmoid_call": ("hardsigmoid",),
    "hardswish_call": ("hardswish",),
    "relu6": ("clamp",),
    "gelu_written": ("gelu_tanh",),
    "cube_mul": ("cube",),
    "cube_pow": ("cube",),
    "square_pow": ("square",),
    "square_affine": ("square", "scale", "shift"),
    "gaussian": ("square", "neg", "exp"),
    "exp_neg_abs": ("abs", "neg", "exp"),
    "hardtanh": ("clamp",),
    "standardise": ("layer_norm",),
    "rms_norm_weight": ("rms_norm",),
    "l2_unit": ("l2_normalize",),
    "l1_unit": ("l1_normalize",),
}
FOLDS = {  # fold -> steps before, fold, steps after
    "l1": (("abs",), "sum", ()),
    "square_sum": (("square",), "sum", ()),
    "mean_square": (("square",), "mean", ()),
    "l2": (("square",), "sum", ("sqrt",)),
    "norm": (("square",), "sum", ("sqrt",)),
    "rms": (("square",), "mean", ("sqrt",)),
    "amax": ((), "max", ()),
    "amin": ((), "min", ()),
}

# The real tasks that the corpus keeps out, in the same form: twelve that runs are measured on, and all of the held-out
# side of the benchmark that the generator can draw.
REAL = {
    "elementwise relu": "1_019",
    "elementwise gelu": "1_026",
    "elementwise gelu_tanh": "1_088",
    "elementwise scale": "1_005",
    "elementwise mul:scalar": "1_005",
    "elementwise mul:column": "1_012",
    "matmul matmul_nn": "1_001",
    "matmul matvec": "1_004",
    "rowwise softmax@2d1": "1_023",
    "rowwise log_softmax@2d1": "1_024",
    "rowwise layer_norm@4d123+affine": "1_040",
    "rowwise layer_norm@4d23+affine": "1_040",
    "rowwise layer_norm@3d12+affine": "1_040",
    "reduction sum@3d1": "1_047",
    "reduction argmax@3d1": "1_051",
    "reduction argmin@3d1": "1_052",
    "scan cumsum@2d1": "1_089",
    "loss sub:full square mean@all": "1_094",
    "matmul matmul_nt scale sum@2d1 scale": "2_014",
    "matmul matmul_nt scale sum@2d1": "2_014",
    "matmul matmul_nt sum@2d1 scale": "2_014",
}

KEPT_OUT = frozenset(REAL.values()) | split.HELD_OUT


def key(workload: Workload) -> str:
    """Family and step list in normal form: equal for tasks that differ in constants, names and extents only."""
    words = [part for word in workload.canonical for part in _normal(word)]
    if len(words) > 1 and words[0] == "rsub:full" and words[1] in ("square", "abs", "huber"):
        words[0] = "sub:full"  # an even function does not see the sign of a difference
    merged = [
        word for place, word in enumerate(words) if place == 0 or word not in ("scale",) or words[place - 1] != word
    ]
    return " ".join((workload.family, *merged))


def is_real(workload: Workload) -> bool:
    """Whether the task means what one of the real tasks means."""
    return key(workload) in REAL


def _normal(word: str) -> tuple[str, ...]:
    name, mark, rest = word.partition("@") if "@" in word else word.partition(":")
    if mark == "@" and name in FOLDS:
        before, fold, after = FOLDS[name]
        return (*before, f"{fold}@{rest}", *after)
    same = SAME.get(name, (name,))
    return (*same[:-1], f"{same[-1]}{mark}{rest}")
