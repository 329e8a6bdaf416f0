import pytest

from cudal1_jax.contrastive import prompt
from cudal1_jax.contrastive.exemplars import Exemplar
from evaluator.program.extract import extract
from evaluator.records import Interval
from evaluator.tasks.task import Array, Task

TASK = Task(
    id="t",
    name="relu",
    family="elementwise",
    source="def forward(nn, x):\n    return nn.relu(x)\n",
    sizes={"cpu": (Array("x", (64, 300)),)},
)


def exemplar(program, value):
    return Exemplar(program, Interval(value, value - 0.04, value + 0.05))


def test_a_prompt_shows_task_arrays_device_and_rules():
    text = prompt.render(TASK, "cpu", [], "cpu")
    assert "x: float32[64, 300]" in text
    assert "return nn.relu(x)" in text
    assert "Device: cpu." in text
    for heading in ("## Performance analysis", "## Algorithm design", "## Code"):
        assert heading in text


def test_exemplars_are_shown_slowest_first_with_their_intervals():
    text = prompt.render(TASK, "cpu", [exemplar("fast()", 1.83), exemplar("slow()", 1.0)], "cpu")
    assert "speed-up 1.83 (1.79 to 1.88)\n```python\nfast()\n```" in text
    assert text.index("slow()") < text.index("fast()")


def test_a_prompt_without_exemplars_does_not_speak_of_them():
    assert "Earlier programs" not in prompt.render(TASK, "cpu", [], "cpu")


def test_braces_in_programs_are_left_alone():
    assert "f{x} {}" in prompt.render(TASK, "cpu", [exemplar("f{x} {}", 1.0)], "cpu")


def test_an_exemplar_with_a_code_fence_is_refused_with_its_line():
    with pytest.raises(ValueError, match="line 2 of a text for a prompt holds '```'"):
        prompt.render(TASK, "cpu", [exemplar("a\n```\nb", 1.0)], "cpu")


def test_a_completion_gives_back_its_program():
    code = "import cupy as cp\n\n\ndef forward(x):\n    return x\n"
    assert extract(prompt.completion("slow", "faster", code)) == code


def test_a_completion_has_its_three_headings_in_order():
    text = prompt.completion("why", "how", "pass\n")
    places = [
        text.index(heading) for heading in ("## Performance analysis\nwhy", "## Algorithm design\nhow", "## Code\n")
    ]
    assert places == sorted(places)


def test_a_completion_refuses_a_second_fence():
    with pytest.raises(ValueError, match="holds '```'"):
        prompt.completion("see ```x```", "d", "c")


def test_a_prompt_shows_exemplars_without_their_docstrings():
    program = '"""Why it is fast.\n\nTechniques: many\n"""\nimport cupy as cp\n\nx = """kept"""\n'
    text = prompt.render(TASK, "cpu", [exemplar(program, 1.0)], "cpu")
    assert "Why it is fast" not in text
    assert '```python\nimport cupy as cp\n\nx = """kept"""\n```' in text


@pytest.mark.parametrize("program", ["", "x = 1\n", "1\n", "'a' 'b'\nx = 1\n", "def broken(:\n", "\0"])
def test_any_text_can_be_shown_as_a_program(program):
    assert prompt.without_docstring(program) in (program, "x = 1\n")
