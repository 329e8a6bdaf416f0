"""The programs of the corpus on the emulator, judged by the same ladder as those of a policy."""

import dataclasses
from random import Random

import pytest

from cudal1_jax.corpus import families, verify
from cudal1_jax.corpus.folder import Recipe
from cudal1_jax.corpus.make import make
from evaluator.judge.baseline import kernels_folder
from evaluator.judge.ladder import Judge
from evaluator.records import Outcome


@pytest.fixture(scope="module")
def judge():
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize("name", [source[0] for source in families.SOURCES])
def test_plain_and_other_programs_of_every_family_are_ok(name, judge):
    draw = {source[0]: source[1] for source in families.SOURCES}[name]
    rng = Random(f"verify {name}")
    workload = draw(rng, (2_000, 10_000))
    task = dataclasses.replace(workload.task, id=name)
    for writer in (workload.writers[0], workload.writers[-1]):
        program = writer(rng)
        verdict = judge.check(program.text, task, timing=False, cases=("negated", "large"))
        assert verdict.outcome is Outcome.OK, f"{program.form}: {verdict.message}\n{task.source}\n{program.text}"


def test_a_table_counts_by_family_and_form_and_names_what_failed():
    text = verify.table(
        {("scan", "thread"): (2, 3, ["single_00001: wrong_value: off by one"]), ("scan", "warp"): (1, 1, [])}
    )
    assert [line.split() for line in text.splitlines()[1:4]] == [
        ["scan", "thread", "3", "2"],
        ["scan", "warp", "1", "1"],
        ["all", "4", "3"],
    ]
    assert "single_00001: wrong_value: off by one" in text


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_program_of_a_corpus_is_ok(tmp_path):
    recipe = Recipe(
        seed=7, singles=450, contests=50, per_contest=8, kernel_contests=1, most_tokens=420, version="test", shard=200
    )
    make(tmp_path / "corpus", recipe, workers=2, kernels=kernels_folder())
    found = verify.verify(tmp_path / "corpus", share=1.0, seed=0, workers=2)
    assert sum(judged for _, judged, _ in found.values()) >= 600
    assert [fault for _, _, faults in found.values() for fault in faults] == []
