"""The NVRTC options a program may pass. What decides the device or reads files belongs to the evaluator."""

import re
from collections.abc import Iterable

from evaluator.program import cuda_screen
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
_DEFINITION = re.compile(r"(?:-D|--define-macro=)(?P<name>\w+)=?(?P<value>.*)")
_EXAMPLES = "-std=c++17, --use_fast_math, --fmad=false, -lineinfo, --maxrregcount=64, -DNAME=VALUE"


def check(options: Iterable[str], program: str) -> None:
    """Raises ProgramFault `refused` for the first option outside the allow-list.

    A macro of an option may say no word that the text itself may not say.
    """
    for option in options:
        reason = f"is not in the surface; allowed are such as {_EXAMPLES}"
        if _ALLOWED.fullmatch(option):
            defined = _DEFINITION.fullmatch(option)
            reason = _refusal(f"#define {defined['name']} {defined['value']}\n") if defined else ""
        if reason:
            lines = [number for number, text in enumerate(program.split("\n"), start=1) if option in text]
            message = f"compile option {option[:80]!r} {reason}"
            raise ProgramFault(Outcome.REFUSED, Rung.SCREEN, message, lines[0] if lines else None)


def _refusal(source: str) -> str:
    """Why CUDA text may not say `source`; empty where it may."""
    return next((f"defines what CUDA text may not say: {reason}" for _, reason in cuda_screen.findings(source)), "")
