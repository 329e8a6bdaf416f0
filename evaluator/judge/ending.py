"""How a command ends: its exit code, or the refusal to begin."""

from collections.abc import Iterable

from evaluator.records import Outcome, Verdict

OK, FAULT, WRONG_USE, OURS, UNDECIDED = 0, 1, 2, 3, 4
INTERRUPTED, NOBODY_READS = 130, 141  # as a shell says of a program that SIGINT or SIGPIPE ended
_UNDECIDED = (Outcome.UNSUPPORTED, Outcome.UNSTABLE_TIMING)


class WrongUse(Exception):
    """What was asked cannot be done as asked; the text says what to do."""


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The gravest of several: a fault of ours, a judged fault, undecided, ok."""
    outcomes = {verdict.outcome for verdict in verdicts}
    if Outcome.EVALUATOR_ERROR in outcomes:
        return OURS
    if outcomes - {Outcome.OK, *_UNDECIDED}:
        return FAULT
    return UNDECIDED if outcomes & set(_UNDECIDED) else OK
