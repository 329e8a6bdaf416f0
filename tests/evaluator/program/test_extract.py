"""Exactly one program is found in a completion, or the reason is said."""

import pytest

from evaluator.program.extract import extract
from evaluator.records import Outcome, ProgramFault, Rung

PROGRAM = "import cupy as cp\n\ndef forward(x):\n    return x\n"


@pytest.mark.parametrize(
    "completion",
    [
        f"```python\n{PROGRAM}```",
        f"## Performance analysis\nSlow.\n\n## Code\n```python\n{PROGRAM}```\nDone.",
        f"```cuda\n__global__ void k();\n```\n```python\n{PROGRAM}```",
        f"```\n```python\n```\n```python\n{PROGRAM}```",
        f"  ```Python\n{PROGRAM}  ```  ",
        f"````python\n{PROGRAM}````",
        f"~~~python\n{PROGRAM}~~~",
        f"Use `python` and ```inline``` text.\n```python\n{PROGRAM}```",
        f"```python\r\n{PROGRAM}```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
    ],
)
def test_the_one_program_is_found_with_lf_line_ends(completion):
    assert extract(completion) == PROGRAM


def test_a_fence_inside_a_longer_fence_is_text():
    text = PROGRAM.replace("return x", '"""\n```\n"""\n    return x')
    assert extract(f"````python\n{text}````") == text


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", "no ```python fence"),
        ("def forward(x): return x", "no ```python fence"),
        (f"```\n{PROGRAM}```", "no ```python fence"),
        (f"```cuda\n{PROGRAM}```", "no ```python fence"),
        (f"    ```python\n{PROGRAM}    ```", "no ```python fence"),
        (f"Code: ```python\n{PROGRAM}```", "no ```python fence"),
        (f"```python\n{PROGRAM}```\n```python\n{PROGRAM}```", "2 ```python fences found, on lines 1, 7"),
        (f"text\n```python\n{PROGRAM}", "the ```python fence on line 2 never ends"),
        ("```python\n\n \n```", "is empty"),
        ("```python\n```", "is empty"),
    ],
)
def test_no_program_is_found_and_the_reason_is_said(completion, reason):
    with pytest.raises(ProgramFault) as caught:
        extract(completion)
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.NO_PROGRAM, Rung.EXTRACT)
    assert reason in caught.value.fault.message
