"""The NVRTC options a program may pass. What decides the device or reads files belongs to the evaluator."""

import re
from collections.abc import Iterable

from evaluator.records import Outcome, ProgramFault, Rung

_ALLOWED = re.compile(
    r"""
    --?std=c\+\+(11|14|17|20)
  | --?use_fast_math
  | --?(fmad|ftz|prec-div|prec-sqrt)=(true|false)
  | -lineinfo | --generate-line-info
  | --?maxrregcount=[1-9][0-9]{0,2}
  | --?restrict
  | --extra-device-vectorization
  | --?default-device | --device-as-default-execution-space
  | -w | --disable-warnings
  | (-D|--define-macro=)[A-Za-z][A-Za-z0-9_]{0,99}(=[A-Za-z0-9_.+*/%()<>,: -]{0,200})?
    """,
    re.VERBOSE,
)
_EXAMPLES = "-std=c++17, --use_fast_math, --fmad=false, -lineinfo, --maxrregcount=64, -DNAME=VALUE"


def check(options: Iterable[str], program: str) -> None:
    """Raises ProgramFault `refused` for the first option outside the allow-list."""
    for option in options:
        if not _ALLOWED.fullmatch(option):
            lines = [number for number, text in enumerate(program.split("\n"), start=1) if option in text]
            message = f"compile option {option[:80]!r} is not in the surface; allowed are such as {_EXAMPLES}"
            raise ProgramFault(Outcome.REFUSED, Rung.SCREEN, message, lines[0] if lines else None)
