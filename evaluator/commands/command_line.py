"""Command line of the evaluator: judge, verify and compare programs, list tasks, examine the machine.

With --json, one line per program on stdout and everything else on stderr. Exit codes: 0 ok, 1 a judged fault,
2 wrong use, 3 a fault of the evaluator or of this machine, 4 `unsupported` or `unstable_timing`, 130 interrupted,
141 nobody reads stdout any more.
"""

import argparse
import contextlib
import errno
import io
import os
import select
import sys
import traceback
from collections.abc import Callable, Sequence

from evaluator.baselines import command as baselines
from evaluator.commands import check, compare, examine, subjects, tasks, verify
from evaluator.judge import doctor
from evaluator.judge.ending import INTERRUPTED, NOBODY_READS, OK, OURS, WRONG_USE, WrongUse
from evaluator.mutants import command as mutants
from evaluator.records import EVALUATOR_VERSION
from evaluator.workers import serve_command
from evaluator.workers.pool import PoolError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code. Whatever happens, Python's own, 1, is never taken for a judgement."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever a file is named, its verdict is shown
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        print(end="", flush=True)  # does nothing where stdout was closed from the start
        return code
    except WrongUse as error:
        return _end(WRONG_USE, str(error))
    except KeyboardInterrupt:
        return _end(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        return _drop_stdout(NOBODY_READS) if _is_stdout_closed() else _end_unforeseen()
    except OSError as error:
        if error.errno not in _FULL:
            return _end_unforeseen()
        where = f" ({error.filename})" if error.filename else ""
        return _drop_stdout(_end(OURS, f"cannot write{where}: {error.strerror}; free some space or write elsewhere"))
    except Exception:
        return _end_unforeseen()


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    try:
        options, unknown = parser.parse_known_args(argv)
        if "run" not in options:
            parser.print_help(sys.stderr)
            return WRONG_USE
        if unknown:
            options.command.error(f"unrecognized arguments: {' '.join(unknown)}")
    except SystemExit as ended:  # argparse has said why
        return int(ended.code or OK)
    if getattr(options, "size", "") is None:
        options.size = "kb" if options.device == "cuda" else "cpu"
    return options.run(options)


def _end(code: int, reason: str) -> int:
    with contextlib.suppress(OSError):  # stderr may be full as well
        print(f"evaluator: {reason}", file=sys.stderr)
    return code


def _end_unforeseen() -> int:
    with contextlib.suppress(OSError):
        traceback.print_exc()
    return OURS


def _drop_stdout(code: int) -> int:
    """`code`, after what stdout did not take is given up: else Python complains of it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _is_stdout_closed() -> bool:
    """Whether whoever read our output has gone, as `head` does."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _measure_baselines(options: argparse.Namespace) -> int:
    return baselines.run(options, subjects.known_tasks(options.tasks_file))


def _serve(options: argparse.Namespace) -> int:
    """Judges for learners on other hosts, until it is told to end."""
    known = subjects.known_tasks(options.tasks_file)
    if (reason := doctor.missing_for(options.device)) is not None:
        raise WrongUse(reason)
    try:
        serve_command.serve(options, known)
    except (PoolError, ValueError, OSError) as error:
        raise WrongUse(str(error)) from error
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=EVALUATOR_VERSION)
    commands = parser.add_subparsers(metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.set_defaults(run=run, command=command)
        return command

    check.add_arguments(add("check", check.run, "judge one program"))
    verify.add_arguments(add("verify", verify.run, "judge every program of some folders"))
    compare.add_arguments(add("compare", compare.run, "time program B in pairs against program A"))
    tasks.add_arguments(add("tasks", tasks.run, "list tasks; `tasks show ID` prints one"))
    mutants.add_arguments(add("mutants", mutants.run, "derive faulty programs and count which the judge catches"))
    about_baselines = "time other libraries on the references of tasks"
    baselines.add_arguments(add("baselines", _measure_baselines, about_baselines))
    serve_command.add_arguments(add("serve", _serve, "judge for learners on other hosts (docs/pools.md)"))
    add("doctor", examine.run, "what this machine can judge on, what is missing, and its noise")
    return parser
