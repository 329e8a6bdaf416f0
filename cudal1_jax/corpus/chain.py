"""A chain of elementwise steps with its operands: drawn, written in `nn`, written as CUDA statements."""

import dataclasses
import re
from collections.abc import Collection, Mapping
from random import Random

from cudal1_jax.corpus import pointwise
from cudal1_jax.corpus.pointwise import Known, Step


@dataclasses.dataclass(frozen=True)
class Operand:
    """A further input of a chain and how it is broadcast against the value."""

    name: str
    place: str  # full, row (indexed by column), column (indexed by row), channel, batch, item (all but batch) or scalar
    nn: str  # the operand in the task's text, for example "s[:, None]"


@dataclasses.dataclass(frozen=True)
class Chain:
    """Steps applied in order. A step whose operand is `origin` uses the value from before the first step."""

    steps: tuple[Step, ...] = ()
    operands: tuple[Operand, ...] = ()
    origin: str | None = None  # name under which steps use the value from before the chain

    @property
    def names(self) -> tuple[str, ...]:
        """The chain's canonical step list: kinds, and how operands are broadcast; no constants, no names."""
        places = {operand.name: operand.place for operand in self.operands}
        return tuple(
            f"{step.kind.name}:{places.get(step.operand, 'origin')}" if step.operand else step.kind.name
            for step in self.steps
        )

    @property
    def uses_origin(self) -> bool:
        return self.origin is not None and any(step.operand == self.origin for step in self.steps)

    @property
    def pointers(self) -> tuple[str, ...]:
        return tuple(operand.name for operand in self.operands)


def draw(
    rng: Random,
    length: int,
    operands: tuple[Operand, ...] = (),
    origin: str | None = None,
    exact: bool = False,
    known: Known = frozenset(),
) -> Chain:
    """A chain of `length` steps that uses every operand once; with `origin`, sometimes the first value again."""
    slots = sorted(rng.sample(range(length), len(operands)))
    order = dict(zip(slots, operands, strict=True))
    steps: list[Step] = []
    for place in range(length):
        if place in order:
            step = pointwise.binary(rng, order[place].name, exact)
        elif origin and place >= 1 and not exact and rng.random() < 0.15:
            step = pointwise.binary(rng, origin)
        else:
            step = _fresh(rng, known, exact, steps)
        steps.append(step)
        known = pointwise.after(step, known)
    return Chain(tuple(steps), operands, origin)


def _fresh(rng: Random, known: Known, exact: bool, before: list[Step]) -> Step:
    """A unary step that does not repeat the one before it."""
    while True:
        step = pointwise.unary(rng, known, exact)
        if not before or before[-1].kind.name != step.kind.name:
            return step


def statements(chain: Chain, load: str, operands: Mapping[str, str], name: str = "v") -> tuple[list[str], str]:
    """CUDA statements for a chain on the value `load`, and the expression of the last step.

    `operands` gives each operand's expression in CUDA. Where every step can be written around `load`, there are no
    statements and the expression says it all.
    """
    if not chain.steps:
        return [], load
    if len(chain.steps) == 1 and not chain.steps[0].uses_value_twice:
        return [], _apply(chain, chain.steps[0], load, operands, load)
    first = f"{name}0" if chain.uses_origin else name
    lines = [f"float {first} = {load};"]
    if len(chain.steps) == 1:
        return lines, _apply(chain, chain.steps[0], first, operands, first)
    lead = "float " if chain.uses_origin else ""
    lines.append(f"{lead}{name} = {_apply(chain, chain.steps[0], first, operands, first)};")
    lines += [f"{name} = {_apply(chain, step, name, operands, first)};" for step in chain.steps[1:-1]]
    return lines, _apply(chain, chain.steps[-1], name, operands, first)


def value(chain: Chain, load: str, operands: Mapping[str, str], name: str = "v") -> list[str]:
    """CUDA statements that leave the chain's result in the variable `name`."""
    lines, last = statements(chain, load, operands, name)
    if not lines:
        return [f"float {name} = {last};"]
    declared = any(line.startswith(f"float {name} =") for line in lines)
    return [*lines, f"{name} = {last};" if declared else f"float {name} = {last};"]


def _apply(chain: Chain, step: Step, current: str, operands: Mapping[str, str], first: str) -> str:
    if step.operand is None:
        return step.cuda(current)
    return step.cuda(current, first if step.operand == chain.origin else operands[step.operand])


_ARGUMENT = re.compile(r"\w\(\{v\}[,)]")  # the value stands alone as the first argument of a call
_POWER = re.compile(r"\b(\w+) \*\* (?=\d)")


class Formula:
    """The text of a task's `forward`, grown step by step: statements and the expression that is still open."""

    def __init__(self, start: str, nested: bool, name: str):
        """From the expression `start`; with `nested`, names are given only where a value is used twice."""
        self.lines: list[str] = []
        self.open = start  # expression of the running value
        self.infix = False  # it needs parentheses inside a larger one
        self._nested = nested
        self._name = name

    @classmethod
    def drawn(cls, rng: Random, start: str, arguments: Collection[str], again: bool = False) -> "Formula":
        """A formula that starts at the argument `start`, under a name no argument has, or under that of `start` itself
        unless the steps come back to it (`again`)."""
        names = [name for name in ("y", "out", "h", "z") if name not in arguments]
        if not again:
            names += [start] * 2
        return cls(start, nested=rng.random() < 0.5, name=rng.choice(names))

    def apply(self, template: str, infix: bool) -> None:
        """Put the running value into `template` at `{v}`; a template with braces of its own must double them."""
        many = template.count("{v}") > 1
        if self._open_is_compound() and (many or not self._nested):
            self.flush()
        inner = f"({self.open})" if self.infix and not _ARGUMENT.search(template) else self.open
        self.open, self.infix = template.replace("{v}", inner), infix

    def steps(self, chain: Chain) -> None:
        texts = {operand.name: operand.nn for operand in chain.operands}
        for step in chain.steps:
            operand = texts.get(step.operand, step.operand) if step.operand else None
            template = step.nn("{v}", operand)
            self.apply(template, step.kind.infix)

    def let(self, name: str, template: str) -> None:
        """A statement of its own, `name = template` with the running value in it; the running value stays as it is."""
        self.flush()
        self.lines.append(f"{name} = {template.replace('{v}', self.open)}")

    def flush(self) -> None:
        """Give the running value a name."""
        if self._open_is_compound():
            self.lines.append(f"{self._name} = {self.open}")
            self.open, self.infix = self._name, False

    def source(self, arguments: tuple[str, ...]) -> str:
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return {self.open}"])
        return f"def forward(nn, {', '.join(arguments)}):\n{_POWER.sub(_hugged, body)}"

    def _open_is_compound(self) -> bool:
        return not self.open.isidentifier()


def device_function(chain: Chain, function: str, name: str = "v") -> list[str]:
    """A `__device__` function that applies the chain to one value; operands become further arguments."""
    first = f"{name}0" if chain.uses_origin else name
    parameters = ", ".join(f"float {text}" for text in (first, *chain.pointers))
    lines, last = statements(chain, first, {text: text for text in chain.pointers}, name)
    body = [line for line in lines if line != f"float {first} = {first};"]
    return [f"__device__ float {function}({parameters}) {{", *(f"  {line}" for line in body), f"  return {last};", "}"]


def in_place(chain: Chain, name: str, operands: Mapping[str, str]) -> tuple[list[str], str]:
    """Statements that apply all but the last step to the variable `name`, and the expression of the last step."""
    applied = [_apply(chain, step, name, operands, name) for step in chain.steps]
    return [f"{name} = {text};" for text in applied[:-1]], applied[-1] if applied else name


def _hugged(power: re.Match[str]) -> str:
    """A power of a name is written without spaces, as formatters do."""
    return f"{power[1]}**"
