"""Derives faulty programs from a correct one: one change each, of one of the kinds below."""

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from evaluator.judge.seeds import derive as derive_seed
from evaluator.mutants.kinds import arithmetic, control, launch, memory, precision
from evaluator.mutants.program import Edit, Program
from evaluator.program.identity import sha256

Derivation = Callable[[Program], Iterator[Edit]]

# The docstring of each function says what its fault is. Where two kinds give one text it counts for the first.
KINDS: Mapping[str, Derivation] = {
    kind.__name__: kind
    for kind in (
        control.loop_bound_short,
        control.loop_bound_far,
        control.loop_starts_late,
        control.reduction_step_missing,
        control.guard_boundary,
        control.tie_breaking,
        control.bound_check_dropped,
        control.barrier_missing,
        control.statement_dropped,
        control.branch_swapped,
        control.tail_dropped,
        arithmetic.plus_to_minus,
        arithmetic.minus_to_plus,
        arithmetic.maximum_not_subtracted,
        arithmetic.operands_swapped,
        arithmetic.term_dropped,
        arithmetic.factor_dropped,
        arithmetic.divisor_off_by_one,
        arithmetic.constant_off_by_one_percent,
        arithmetic.epsilon_changed,
        arithmetic.extremum_without_nan_rule,
        arithmetic.extremum_swapped,
        arithmetic.clamp_dropped,
        arithmetic.call_dropped,
        precision.sum_in_half,
        precision.sum_in_bf16,
        precision.operand_in_half,
        precision.operand_in_bf16,
        precision.crude_function,
        precision.integer_temporary,
        memory.index_stride,
        memory.index_shifted,
        memory.vector_lane,
        memory.wrong_axis,
        memory.shared_memory_halved,
        memory.atomic_to_plain,
        memory.reduction_identity,
        memory.initial_value_missing,
        launch.grid_one_fewer,
        launch.block_one_warp_fewer,
        launch.dynamic_shared_memory_halved,
        launch.grid_tail_dropped,
        launch.arguments_swapped,
        launch.wrong_dimension,
        launch.launch_dropped,
        launch.zeros_to_empty,
        launch.temporary_in_half,
    )
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A correct program with one change. Can be pickled."""

    id: str  # digest of the text
    program: str  # the original's path
    task: str
    kind: str
    line: int  # of the file, where the change begins
    before: str  # the lines that changed, without what surrounds them
    after: str
    text: str


def derive(path: Path, text: str, kinds: Iterable[str] = KINDS) -> list[Mutant]:
    """Every mutant of a program, in the order of `kinds` and of the text, no text twice.

    A program's task is the name of its folder. ValueError where the text is no Python.
    """
    program, seen, mutants = Program(text), {text}, []
    for kind in kinds:
        for edit in KINDS[kind](program):
            changed = text[: edit.start] + edit.replacement + text[edit.end :]
            if changed not in seen:
                seen.add(changed)
                mutants.append(_mutant(path, program, kind, edit, changed))
    return mutants


def _mutant(path: Path, program: Program, kind: str, edit: Edit, changed: str) -> Mutant:
    text = program.text
    first = text.rfind("\n", 0, edit.start) + 1
    last = text.find("\n", edit.end)
    last = len(text) if last < 0 else last
    grown = len(changed) - len(text)
    return Mutant(
        id=sha256(changed)[:16],
        program=str(path),
        task=path.resolve().parent.name,
        kind=kind,
        line=program.line(edit.start),
        before=text[first:last].strip(),
        after=changed[first : last + grown].strip(),
        text=changed,
    )


def in_turns(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """The same mutants in a random order in which kinds take turns, and within a kind programs do.

    A prefix of any length thus holds rare kinds and all programs. Equal seeds give equal orders.
    """
    order = sorted(mutants, key=lambda mutant: derive_seed(seed, "mutants", mutant.id))
    by_program = _in_rounds(order, lambda mutant: (mutant.kind, mutant.program))
    return _in_rounds(by_program, lambda mutant: mutant.kind)


def _in_rounds(mutants: Sequence[Mutant], group: Callable[[Mutant], Hashable]) -> list[Mutant]:
    """First the first of every group, then the second of every group, and so on; else in the order given."""
    seen: collections.Counter[Hashable] = collections.Counter()
    rounds: list[list[Mutant]] = []
    for mutant in mutants:
        number = seen[group(mutant)]
        seen[group(mutant)] += 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(mutant)
    return [mutant for each in rounds for mutant in each]
