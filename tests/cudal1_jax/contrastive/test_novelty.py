from cudal1_jax.contrastive.novelty import corpus_streams, novel
from cudal1_jax.contrastive.records import SEED_STEP, Judged

PROGRAM = "import cupy as cp\n\n\ndef forward(x):\n    y = cp.empty_like(x)\n    return y\n"
RENAMED = PROGRAM.replace("y", "result").replace("cupresult", "cupy").replace("emptresult", "empty")
OTHER = PROGRAM.replace("empty_like", "zeros_like")


def entries(verdict, *programs):
    return [Judged(step, n, "1_019", text, "", verdict(text)) for n, (step, text) in enumerate(programs)]


def test_a_program_is_new_once(verdict):
    assert novel(entries(verdict, (0, PROGRAM), (0, PROGRAM), (1, PROGRAM)), []) == [True, False, False]


def test_renaming_and_comments_do_not_make_a_program_new(verdict):
    assert "result = cp.empty_like" in RENAMED
    commented = RENAMED.replace("    return", "    # a remark\n    return")
    flags = novel(entries(verdict, (0, PROGRAM), (0, RENAMED), (0, commented), (0, OTHER)), [])
    assert flags == [True, False, False, True]


def test_programs_of_kernels_and_seeds_are_not_new(verdict, tmp_path):
    (tmp_path / "1_019").mkdir()
    (tmp_path / "1_019" / "plain.py").write_text(PROGRAM)
    assert novel(entries(verdict, (0, RENAMED)), corpus_streams(tmp_path)) == [False]
    assert novel(entries(verdict, (SEED_STEP, PROGRAM), (0, RENAMED)), []) == [False, False]


def test_a_completion_without_a_program_is_not_new(verdict):
    assert novel(entries(verdict, (0, "")), []) == [False]
