"""Faults of control flow: loop bounds, comparisons, guards, barriers, statements left out."""

from collections.abc import Iterator

from evaluator.mutants import syntax
from evaluator.mutants.program import Edit, Program
from evaluator.program.cuda_tokens import Kind

_OTHER_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def loop_bound_short(p: Program) -> Iterator[Edit]:
    """`i < n` becomes `i < (n) - 1` in a loop that counts up or down: the last round is missing."""
    for loop in syntax.loops(p):
        if _doubles(p, loop):
            continue
        found = [i for i in syntax.comparisons(p) if loop.condition[0] <= i < loop.condition[1]]
        for i in found:
            behind = next((j for j in range(i, loop.condition[1]) if p.word(j) in ("&&", "||")), loop.condition[1])
            step = "- 1" if p.word(i) in ("<", "<=") else "+ 1"
            yield p.edit(i + 1, behind, f"({p.cuda(i + 1, behind)}) {step}")


def loop_bound_far(p: Program) -> Iterator[Edit]:
    """`i < n` becomes `i <= n` in a loop, and the other way round."""
    for loop in syntax.loops(p):
        for i in syntax.comparisons(p):
            if loop.condition[0] <= i < loop.condition[1]:
                yield p.edit(i, i + 1, _OTHER_BOUNDARY[p.word(i)])


def loop_starts_late(p: Program) -> Iterator[Edit]:
    """A loop that counts up leaves its first round out."""
    for loop in syntax.loops(p):
        first, behind = loop.init
        at = syntax.assignment(p, first, behind)
        counts = any(p.word(i) in ("++", "+=") for i in range(*loop.step))
        if at is not None and counts and "," not in [p.word(i) for i in range(at, behind)]:
            step = next((p.cuda(i + 1, loop.step[1]) for i in range(*loop.step) if p.word(i) == "+="), "1")
            yield p.edit(at + 1, behind, f"{p.cuda(at + 1, behind)} + {step}")


def reduction_step_missing(p: Program) -> Iterator[Edit]:
    """A loop over halves or doubles starts with the second: part of a tree reduction or scan is left out."""
    for loop in syntax.loops(p):
        at = syntax.assignment(p, *loop.init)
        if at is None or not _doubles(p, loop):
            continue
        operator = "/ 2" if any(p.word(i) in ("/=", ">>=") for i in range(*loop.step)) else "* 2"
        yield p.edit(at + 1, loop.init[1], f"({p.cuda(at + 1, loop.init[1])}) {operator}")


def guard_boundary(p: Program) -> Iterator[Edit]:
    """`<` becomes `<=` in an `if` or a choice between integers, and so on."""
    names, within = syntax.floating_names(p), _loop_conditions(p)
    for i in syntax.comparisons(p):
        if i not in within and not _compares_floats(p, i, names):
            yield p.edit(i, i + 1, _OTHER_BOUNDARY[p.word(i)])


def tie_breaking(p: Program) -> Iterator[Edit]:
    """`v > best` becomes `v >= best`: of equal values another one counts."""
    names, within = syntax.floating_names(p), _loop_conditions(p)
    for i in syntax.comparisons(p):
        if i not in within and _compares_floats(p, i, names):
            yield p.edit(i, i + 1, _OTHER_BOUNDARY[p.word(i)])


def bound_check_dropped(p: Program) -> Iterator[Edit]:
    """A condition with a comparison is taken for granted; one that leaves is never met."""
    boundary = set(syntax.comparisons(p))
    for _, first, close in syntax.conditions(p):
        if any(i in boundary for i in range(first, close)):
            leaves = p.word(close + 1) in ("return", "break", "continue")
            yield p.edit(first, close, "false" if leaves else "true")


def barrier_missing(p: Program) -> Iterator[Edit]:
    """A barrier, or the wait for an asynchronous copy, is left out."""
    for name, _ in syntax.calls(p, "__syncthreads", "__syncwarp", "__pipeline_wait_prior"):
        if p.word(p.partner[name + 1] + 1) == ";":
            yield p.edit(name, p.partner[name + 1] + 1, "")


def statement_dropped(p: Program) -> Iterator[Edit]:
    """An assignment is left out: a store, the last partial sum, an update."""
    for first, behind in syntax.statements(p):
        if syntax.assignment(p, first, behind) is not None:
            yield p.edit(first, behind, "")


def branch_swapped(p: Program) -> Iterator[Edit]:
    """`c ? a : b` becomes `c ? b : a`."""
    for i, spot in enumerate(p.spots):
        if spot.text != "?":
            continue
        middle = _until(p, i + 1, (":",))
        end = _until(p, middle + 1, (",", ";", ")", ":", "]", "}")) if middle else None
        if middle and end:
            yield p.edit(i + 1, end, f"{p.cuda(middle + 1, end)} : {p.cuda(i + 1, middle)}")


def tail_dropped(p: Program) -> Iterator[Edit]:
    """`(n + 127) / 128` becomes `(n) / 128`: what does not fill a block or piece is left out."""
    for i in syntax.binary(p, "/"):
        if p.word(i - 1) != ")" or p.spots[i + 1].kind is not Kind.NUMBER:
            continue
        first, close = p.partner.get(i - 1, i - 1), i - 1
        if p.word(close - 2) == "+" and p.word(close - 1) == _one_less(p.word(i + 1)):
            yield p.edit(first, close + 1, f"({p.cuda(first + 1, close - 2)})")


def _one_less(number: str) -> str | None:
    return str(int(number) - 1) if number.isdecimal() else None


def _until(p: Program, first: int, ends: tuple[str, ...]) -> int | None:
    """Index of the first of `ends` outside brackets and inner choices."""
    i, choices = first, 0
    while i < len(p.spots):
        word = p.word(i)
        if word in ends and choices == 0:
            return i
        if word in (";", "}"):
            return None
        choices += (word == "?") - (word == ":")
        i = p.partner[i] + 1 if word in ("(", "[", "{") and i in p.partner else i + 1
    return None


def _doubles(p: Program, loop: syntax.Loop) -> bool:
    return any(p.word(i) in ("/=", "*=", ">>=", "<<=") for i in range(*loop.step))


def _loop_conditions(p: Program) -> frozenset[int]:
    return frozenset(i for loop in syntax.loops(p) for i in range(*loop.condition))


def _compares_floats(p: Program, i: int, names: frozenset[str]) -> bool:
    left, right = syntax.term_start(p, i - 1), syntax.term_end(p, i + 1)
    return syntax.is_floating(p, left, right, names)
