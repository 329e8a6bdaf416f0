"""The docstring's rationale and techniques."""

import pytest

from evaluator.program.docstring import ProgramNotes, facts


@pytest.mark.parametrize(
    ("docstring", "rationale", "techniques"),
    [
        ("One block per row.\n\nTechniques: a, b\n", "One block per row.", ("a", "b")),
        (
            "Why.\nTechniques: float4 loads,\n  several items\n  per thread.\n",
            "Why.",
            ("float4 loads", "several items per thread"),
        ),
        ("TECHNIQUES : a, a, , b", "", ("a", "b")),
        ("Technique: a", "", ("a",)),
        ("Why.\n\nTechniques: a\n\nAnd more.", "Why.\n\nAnd more.", ("a",)),
        ("No list of techniques: none.", "No list of techniques: none.", ()),
        ("Techniques: a\n\nTechniques: b", "Techniques: a", ("b",)),
        ("", "", ()),
    ],
)
def test_the_notes_of_a_docstring(docstring, rationale, techniques):
    assert facts(f'"""{docstring}"""\nx = 1\n') == ProgramNotes(rationale=rationale, techniques=techniques)


@pytest.mark.parametrize("text", ["", "x = 1", "def f(:", "\0", "(" * 1000, "'not first'.x"])
def test_without_a_docstring_the_notes_are_empty(text):
    assert facts(text) == ProgramNotes(rationale="", techniques=())
