"""Derivation: records, repetition, order."""

from collections import Counter
from pathlib import Path

import pytest

from evaluator.judge.baseline import kernels_folder
from evaluator.mutants.derive import KINDS, derive, in_turns
from evaluator.mutants.program import Program

PROGRAM = '''import cupy as cp

source = r"""
extern "C" __global__ void sum(const float* x, float* out, int n) {
  float s = 0.0f;  // größer
  for (int i = 0; i < n; ++i) s += x[i];
  out[0] = s;
}
"""
sum = cp.RawKernel(source, "sum")


def forward(x):
    out = cp.empty((1,), cp.float32)
    sum((1,), (1,), (x, out, x.size))
    return out
'''
PATH = Path("1_047/program.py")


def test_a_mutant_is_one_change_with_its_line_and_both_texts():
    (mutant,) = derive(PATH, PROGRAM, ["loop_bound_far"])
    assert (mutant.program, mutant.task, mutant.kind, mutant.line) == (str(PATH), "1_047", "loop_bound_far", 6)
    assert mutant.before == "for (int i = 0; i < n; ++i) s += x[i];"
    assert mutant.after == "for (int i = 0; i <= n; ++i) s += x[i];"
    assert mutant.text == PROGRAM.replace("i < n", "i <= n")


def test_no_text_comes_twice_and_none_is_the_original():
    mutants = derive(PATH, PROGRAM)
    texts = [mutant.text for mutant in mutants]
    assert len(set(texts)) == len(texts)
    assert PROGRAM not in texts
    assert len({mutant.id for mutant in mutants}) == len(mutants)


def test_where_two_kinds_give_one_text_the_first_asked_for_has_it():
    text = PROGRAM.replace("s += x[i]", "s += expf(x[i] - s)")
    assert [mutant.kind for mutant in derive(PATH, text, ["maximum_not_subtracted", "term_dropped"])] == [
        "maximum_not_subtracted"
    ]


def test_python_that_does_not_parse_is_a_value_error():
    with pytest.raises(ValueError, match="not Python"):
        derive(PATH, "def forward(:")


def test_a_token_over_two_lines_is_a_value_error():
    with pytest.raises(ValueError, match="spliced"):
        Program(PROGRAM.replace("float s", "flo\\\nat s")).spots  # noqa: B018


def test_turns_are_a_permutation_that_the_seed_decides():
    mutants = derive(PATH, PROGRAM)
    assert in_turns(mutants, seed=1) == in_turns(mutants[::-1], seed=1)
    assert in_turns(mutants, seed=1) != in_turns(mutants, seed=2)
    assert sorted(mutant.id for mutant in in_turns(mutants, seed=1)) == sorted(mutant.id for mutant in mutants)


def test_kinds_take_turns_and_programs_within_a_kind():
    other = PROGRAM.replace("0.0f", "0.f")
    mutants = [*derive(PATH, PROGRAM), *derive(Path("1_047/other.py"), other)]
    kinds = {mutant.kind for mutant in mutants}
    ordered = in_turns(mutants, seed=0)
    assert {mutant.kind for mutant in ordered[: len(kinds)]} == kinds
    of_one = [mutant.program for mutant in ordered if mutant.kind == "index_shifted"]
    assert set(of_one[:2]) == {str(PATH), "1_047/other.py"}


def test_another_mutant_does_not_change_the_order_of_those_before():
    mutants = derive(PATH, PROGRAM)
    fewer = [mutant for mutant in mutants if mutant is not mutants[3]]
    kept = [mutant for mutant in in_turns(mutants, seed=0) if mutant is not mutants[3]]
    moved = sum(one is not two for one, two in zip(kept, in_turns(fewer, seed=0), strict=True))
    assert moved <= sum(mutant.kind == mutants[3].kind for mutant in mutants)


def test_kernels_give_thousands_of_mutants_of_every_kind_but_few_without_one():
    folder = kernels_folder()
    assert folder is not None
    mutants = [mutant for path in sorted(folder.glob("*/*plain.py")) for mutant in derive(path, path.read_text())]
    counted = Counter(mutant.kind for mutant in mutants)
    assert len(mutants) > 1000
    assert len(counted) > 0.9 * len(KINDS)


def test_the_document_lists_every_kind_in_its_own_words():
    document = (Path(__file__).parents[3] / "docs" / "mutants.md").read_text()
    section = document.partition("## Kinds of fault")[2]
    listed = [line for line in section.splitlines() if line.startswith("| `")]
    assert listed == [f"| `{name}` | {kind.__doc__.strip().splitlines()[0]} |" for name, kind in KINDS.items()]


def test_cuda_text_that_breaks_off_anywhere_still_gives_mutants_and_no_error():
    text = (kernels_folder() / "1_096" / "vectorised.py").read_text()
    start, end = text.index("r'''") + 4, text.index("'''\n", text.index("r'''") + 4)
    counts = [len(derive(PATH, text[: start + cut] + text[end:])) for cut in range(0, end - start, 23)]
    assert counts[0] < counts[-1]
    assert counts[-1] > 100
