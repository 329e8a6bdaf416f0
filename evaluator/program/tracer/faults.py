"""What goes wrong while a program is traced, as exceptions inside the child process."""


class TraceFault(Exception):
    """Ends the trace with an outcome of the evaluator's vocabulary: its `value` text, and a message for people."""

    def __init__(self, outcome: str, message: str):
        super().__init__(message)
        self.outcome = outcome


def refused(message: str) -> TraceFault:
    """The program leaves the surface that a plan can express."""
    return TraceFault("refused", message)


def value_used(what: str) -> TraceFault:
    """The program wants to know an array's contents, which do not exist while it is traced."""
    return TraceFault(
        "trace_error",
        f"{what} needs the array's values; forward is traced once on shapes and dtypes alone, so control flow may "
        "depend on shapes only and values must be computed in kernels",
    )
