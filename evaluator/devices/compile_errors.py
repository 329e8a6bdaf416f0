"""What a failed run of the compiler says about the program, in the program's own lines and names."""

import re
import signal

from evaluator.devices.lowering import without_literals
from evaluator.devices.toolchain import CompilerRun
from evaluator.program.plan import Plan
from evaluator.records import Limits, Outcome, ProgramFault, Rung, killed

_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
# What linkers say, in the symbol's mangled form or in the text's own.
_UNDEFINED = re.compile(
    r"undefined (?:reference to|symbol:?|hidden symbol:?) [`']?(?:_ZN?[^'\n]*?emulator_module_\d+?\d{1,2}|[^'\n]*::)?"
    r"(?P<name>[A-Za-z_]\w*?)(?:E\w*)?'"
)
_CONFINEMENT_FAILED = (125, 126)  # exit codes of confined-exec itself


def fault(plan: Plan, kernels: list[str], run: CompilerRun, limits: Limits) -> ProgramFault:
    """`kernels`: names in the order of their exports."""
    if run.exit_code in _CONFINEMENT_FAILED:
        return ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, run.errors.strip()[:300])
    said = _compilers_own(run.errors)
    if "No space left on device" in said:
        message = "the disk is full: free some space in the cache folder"
        return ProgramFault(Outcome.EVALUATOR_ERROR, Rung.COMPILE, message)
    if run.in_time and (run.exit_code == -signal.SIGKILL or "Killed signal" in said):
        return killed(Rung.COMPILE, "the compiler")
    if run.exit_code < 0 or "Killed signal" in said or "CPU time limit" in said:
        message = f"compilation was ended after {limits.compile_s:g} s of CPU time"
        return ProgramFault(Outcome.TIMEOUT, Rung.COMPILE, message)
    return ProgramFault(Outcome.COMPILE_ERROR, Rung.COMPILE, _first_error(plan, kernels, run))


def _compilers_own(errors: str) -> str:
    """The lines that are about no place in a text, so that no program can write them: `cc1plus: fatal error: ...`."""
    lines = errors.split("\n")
    return "\n".join(line for line in lines if line and not line[0].isspace() and not re.match(r"[^:]+:\d", line))


def _first_error(plan: Plan, kernels: list[str], run: CompilerRun) -> str:
    errors = [(m["file"], int(m["line"]), _own_words(m["text"])) for m in _ERROR.finditer(run.errors)]
    for file, line, text in errors:
        if module := re.fullmatch(r"kernel_(\d+)\.cu", file):
            source = plan.modules[int(module[1])].source.split("\n")
            shown = source[line - 1].strip() if line <= len(source) else ""
            return f"kernel text line {line}: {text}" + (f" | {shown[:120]}" if shown else "")
    for file, line, text in errors:
        if file == "exports":
            codes = [without_literals(module.source) for module in plan.modules]
            if any(code.count("{") != code.count("}") for code in codes):
                text = "the braces of the kernel text do not match"
            return f"kernel {kernels[line - 1]!r}: {text}"
    if missing := _UNDEFINED.search(run.errors):
        return f"{missing['name']} is declared and nowhere defined"
    first = re.search(r"error: (.*)", run.errors)
    return _own_words(first[1]) if first else run.errors.strip()[:300] or f"the compiler ended with {run.exit_code}"


def _own_words(text: str) -> str:
    """A compiler's message without the names that the program's text was wrapped in."""
    text = re.sub(r"(\{anonymous\}|\(anonymous namespace\))?(::)?emulator_module_\d+::", "", text)
    return text.replace("‘", "'").replace("’", "'")[:300]
