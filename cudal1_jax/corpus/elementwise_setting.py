"""What programs for elementwise chains share: names, extents, how operands are addressed, the text around a kernel."""

import dataclasses
from random import Random

from cudal1_jax.corpus import chain as chains
from cudal1_jax.corpus import layout, style
from cudal1_jax.corpus.chain import Chain
from cudal1_jax.corpus.layout import Extents, Lines
from cudal1_jax.corpus.naming import kernel_name
from cudal1_jax.corpus.program import Kernel, Launch, render
from cudal1_jax.corpus.style import Style


@dataclasses.dataclass(frozen=True)
class Spec:
    """An elementwise task: `main` has the shape of the output, operands are broadcast against it."""

    chain: Chain
    main: str
    shape: tuple[int, ...]
    arguments: tuple[str, ...]  # names in the order of `forward`

    @property
    def places(self) -> set[str]:
        return {operand.place for operand in self.chain.operands}

    @property
    def flat(self) -> bool:
        """Every operand is addressed by the element's own index or not at all."""
        return self.places <= {"full", "scalar"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the forms share: wording, extents, and the arguments a flat index needs."""

    style: Style
    extents: Extents
    spec: Spec
    kernel: str
    scalars: tuple[tuple[str, str], ...] = ()  # constants that are arguments of the kernel: name, value
    wide: bool = False  # flat indices and counts are 64 bits

    @property
    def integer(self) -> str:
        """CUDA type of a flat index."""
        return "long long" if self.wide else "int"

    @property
    def thread(self) -> str:
        """Expression of the global thread index in that type."""
        return f"(long long){self.style.thread}" if self.wide else self.style.thread

    def flat_operands(self, index: str) -> dict[str, str]:
        """CUDA expression of each operand at the flat element `index`."""
        texts = {
            "full": index,
            "row": f"{index} % {self.style.columns}",
            "column": f"{index} / {self.style.columns}",
            "channel": f"{index} / inner % channels",
            "batch": f"{index} / span",
            "item": f"{index} % span",
            "scalar": "0",
        }
        return {operand.name: f"{operand.name}[{texts[operand.place]}]" for operand in self.spec.chain.operands}

    def flat_parameters(self) -> dict[str, str]:
        """Integer parameters that the flat index needs, each with its Python expression."""
        places, rank, main = self.spec.places, len(self.spec.shape), self.spec.main
        extra = {}
        if places & {"row", "column"}:
            extra[self.style.columns] = f"{main}.shape[{rank - 1}]"
        if "channel" in places:
            extra["channels"] = f"{main}.shape[1]"
            extra["inner"] = layout.product([f"{main}.shape[{dim}]" for dim in range(2, rank)])
        if places & {"batch", "item"}:
            extra["span"] = f"{main}.size // {main}.shape[0]"
        return extra

    def parameters(self, integers: tuple[str, ...]) -> tuple[str, ...]:
        pointers = self.style.pointers((self.spec.main, *self.spec.chain.pointers))
        kinds = (self.integer if name == self.style.count else "int" for name in integers)
        numbers = (
            *(f"{kind} {name}" for kind, name in zip(kinds, integers, strict=True)),
            *(f"float {name}" for name, _ in self.scalars),
        )
        return (*pointers, self.style.pointer(self.style.out, "float*"), *numbers)

    def write(self, load: str, at: str, operands: dict[str, str]) -> list[str]:
        lines, last = chains.statements(self.spec.chain, load, operands, self.style.value)
        return [*lines, f"{self.style.out}[{at}] = {last};"]

    def forward(self, launch: list[str], unpack: bool, count: bool) -> list[str]:
        head = [self.extents.statement] if unpack else []
        if count:
            head.append(f"{self.style.count} = {self.spec.main}.size")
        out = f"{self.style.out} = cp.empty({self.spec.main}.shape, cp.float32)"
        return [*head, out, *launch, f"return {self.style.out}"]

    def finish(
        self, kernel: Kernel, launch: list[str], unpack: bool, count: bool, helpers: tuple[str, ...] = ()
    ) -> str:
        body = self.forward(launch, unpack, count)
        return render(self.style, [kernel], self.spec.arguments, body, helpers)


def draw_setting(spec: Spec, rng: Random, blocks: tuple[int, ...] = style.BLOCKS) -> Setting:
    wording = style.draw(rng, (*spec.arguments, "rest", "span", "inner", "channels", "p", "at"), blocks)
    lines = Lines(spec.shape, (len(spec.shape) - 1,))
    extents = layout.extents(rng, lines, spec.main, (*spec.arguments, wording.out, wording.count))
    return Setting(wording, extents, spec, kernel_name(rng, spec.chain, "pointwise"))


def with_scalars(setting: Setting, rng: Random) -> Setting:
    """Now and then, the constants of the first step that has any become arguments, and flat indices 64 bits wide."""
    spec = setting.spec
    setting = dataclasses.replace(setting, wide=rng.random() < 0.3)
    place = next((place for place, step in enumerate(spec.chain.steps) if step.constants), None)
    if place is None or rng.random() > 0.15:
        return setting
    names = [name for name in ("alpha", "beta", "factor", "c0", "c1") if name not in spec.arguments]
    step = spec.chain.steps[place]
    named = dataclasses.replace(step, named=tuple(names[: len(step.constants)]))
    chain = dataclasses.replace(spec.chain, steps=(*spec.chain.steps[:place], named, *spec.chain.steps[place + 1 :]))
    return dataclasses.replace(
        setting,
        spec=dataclasses.replace(spec, chain=chain),
        scalars=tuple(zip(named.named, step.constants, strict=True)),
    )


def flat_program(setting: Setting, body: list[str], grid: str, helpers: tuple[str, ...] = ()) -> str:
    """A program over flat indices: `body` sees the pointers, the count and what broadcasting needs."""
    wording, extra = setting.style, setting.flat_parameters()
    kernel = Kernel(setting.kernel, setting.parameters((wording.count, *extra)), tuple(body))
    scalars = (f"cp.float32({value})" for _, value in setting.scalars)
    arguments = (setting.spec.main, *setting.spec.chain.pointers, wording.out, wording.count, *extra.values(), *scalars)
    launch = Launch(setting.kernel, grid, str(wording.block), arguments).line()
    return setting.finish(kernel, [launch], unpack=False, count=True, helpers=helpers)


def fusion(spec: Spec) -> tuple[str, ...]:
    return ("fusion",) if len(spec.chain.steps) > 1 else ()


def all_steps(spec: Spec) -> str:
    count = len(spec.chain.steps)
    return f"; all {count} steps in one kernel" if count > 1 else ""
