"""`--plot=FILE`: verdicts as a picture."""

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluator.judge.ending import WrongUse
from evaluator.records import Verdict

_SUFFIXES = (".png", ".svg")


def add_argument(parser: argparse.ArgumentParser) -> None:
    about = "draw the buckets of each speed-up and, on a GPU, a roofline (.png or .svg)"
    parser.add_argument("--plot", type=Path, metavar="FILE", help=about)


def require(path: Path | None) -> None:
    """That a picture can be written to `path`, before any work. Raises WrongUse."""
    if path is None:
        return
    if path.suffix not in _SUFFIXES:
        raise WrongUse(f"--plot={path}: the name must end in {' or '.join(_SUFFIXES)}")
    if not path.parent.is_dir():
        raise WrongUse(f"--plot={path}: {path.parent} is no folder; make it first")
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)) or not os.access(path.parent, os.W_OK):
        raise WrongUse(f"--plot={path}: cannot be written to; name another file")
    if importlib.util.find_spec("matplotlib") is None:
        raise WrongUse("--plot needs matplotlib, which is not installed: pip install 'cudal1-jax[report]'")


def write(path: Path | None, rows: Sequence[tuple[str, Verdict]]) -> None:
    """Draws (name, verdict) into `path`; says so where there is nothing to draw."""
    if path is None:
        return
    try:
        from evaluator.commands import figure  # which needs matplotlib

        drawn = figure.draw(rows)
        if drawn is None:
            print(f"nothing was timed, so {path} is not written", file=sys.stderr)
            return
        figure.save(drawn, path)
    except Exception as error:  # of a library; what was judged is worth more than its picture
        print(f"evaluator: {path} is not drawn: {type(error).__name__}: {error}", file=sys.stderr)
        return
    print(f"drawn: {path}", file=sys.stderr)
