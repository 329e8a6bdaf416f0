"""The two texts of the contrastive protocol: the request a policy reads, and the form of what it writes."""

import ast
from collections.abc import Sequence
from pathlib import Path

from cudal1_jax.contrastive.exemplars import Exemplar
from evaluator.tasks.task import Task
from evaluator.tasks.text import task_text

TEMPLATES = Path(__file__).with_name("prompt_templates")
FENCE = "```"


def render(task: Task, size: str, exemplars: Sequence[Exemplar], device: str) -> str:
    """The user message for one task: request, task text, scored exemplars from slowest to fastest, rules.

    Speed-ups are the reference's time over the program's, shown with their 99 % intervals. ValueError: an exemplar
    that holds a code fence, since its text would end early.
    """
    ranked = sorted(exemplars, key=lambda exemplar: exemplar.speedup.value)
    return _template("request").format(
        device=device,
        task=task_text(task, size).strip("\n"),
        exemplars=_template("exemplars").format(programs="".join(map(_exemplar_block, ranked))) if ranked else "",
    )


def completion(analysis: str, design: str, code: str) -> str:
    """The answer in the form that `evaluator.program.extract` accepts: three headings, exactly one code fence."""
    for part in (analysis, design, code):
        _refuse_fence(part)
    return _template("completion").format(analysis=analysis.strip(), design=design.strip(), code=code.strip("\n"))


def can_show(program: str) -> bool:
    """Whether `render` accepts a program as an exemplar."""
    return FENCE not in program


def without_docstring(program: str) -> str:
    """The program as a prompt shows it: its rationale is for people, and the analysis is the policy's own."""
    try:
        body = ast.parse(program).body
    except (SyntaxError, ValueError):
        return program
    if not body or not isinstance(body[0], ast.Expr) or not isinstance(body[0].value, ast.Constant):
        return program
    if not isinstance(body[0].value.value, str):
        return program
    lines = program.split("\n")
    return "\n".join(lines[: body[0].lineno - 1] + lines[body[0].end_lineno :])


def _exemplar_block(exemplar: Exemplar) -> str:
    _refuse_fence(exemplar.program)
    speedup = exemplar.speedup
    return _template("exemplar").format(
        value=f"{speedup.value:.2f}",
        low=f"{speedup.low:.2f}",
        high=f"{speedup.high:.2f}",
        program=without_docstring(exemplar.program).strip("\n"),
    )


def _refuse_fence(text: str) -> None:
    if not can_show(text):
        line = text[: text.index(FENCE)].count("\n") + 1
        raise ValueError(
            f"line {line} of a text for a prompt holds {FENCE!r}, which would end its code block: remove it"
        )


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
