import collections

import pytest

from cudal1_jax.corpus import canonical, generate
from cudal1_jax.corpus.example import stream_digest
from cudal1_jax.policy import tokenizer
from evaluator.program.extract import extract
from evaluator.program.screen import screen
from evaluator.records import Limits


def any_length(text: str) -> bool:
    return True


@pytest.fixture(scope="module")
def held_out():
    return generate.held_out(0, any_length)


@pytest.fixture(scope="module")
def singles(held_out):
    return generate.singles(0, 0, 120, frozenset(each.key for each in held_out), any_length)


def test_equal_seeds_give_equal_examples(singles, held_out):
    banned = frozenset(each.key for each in held_out)
    assert generate.singles(0, 0, 30, banned, any_length) == singles[:30]
    assert generate.singles(1, 0, 30, banned, any_length) != singles[:30]


def test_forty_chains_of_two_steps_or_more_are_held_out(held_out):
    assert len(held_out) == 40
    assert len({each.key for each in held_out}) == 40
    assert all(len(each.key.split()) >= 3 for each in held_out)  # the family, then the steps
    families = collections.Counter(each.family for each in held_out)
    assert set(families) == {"elementwise", "rowwise", "reduction", "scan", "matmul", "loss"}
    assert min(families.values()) >= 4


def test_no_example_shares_its_step_list_with_a_held_out_or_a_real_task(singles, held_out):
    banned = {each.key for each in held_out} | set(canonical.REAL)
    assert not {each.key for each in singles} & banned
    contests = generate.contests(0, 0, 60, frozenset(each.key for each in held_out), any_length)
    assert not {each.key for each in contests} & banned


def test_no_program_comes_twice_in_a_shard(singles):
    assert len({each.stream for each in singles}) == len(singles)


def test_every_completion_holds_its_program_and_passes_the_screen(singles):
    for each in singles:
        assert extract(each.completion).strip() == each.program.strip()
        screen(each.program, Limits())


def test_programs_that_do_not_fit_are_left_out():
    short = generate.singles(0, 0, 20, frozenset(), lambda text: len(text) < 800)
    assert max(len(each.program) for each in short) < 800


def test_what_is_said_before_the_code_is_short(singles):
    encode = tokenizer.load().encode
    assert max(len(encode(each.completion.split("## Code")[0])) for each in singles) <= 100  # headings included


def test_a_contest_has_six_programs_of_as_many_forms_as_there_are():
    made = generate.contests(0, 0, 40, frozenset(), any_length)
    for contest in made:
        streams = {stream_digest(program.text) for program in contest.candidates}
        assert len(streams) == len(contest.candidates) == generate.CANDIDATES
    forms = [len({program.form for program in contest.candidates}) for contest in made]
    assert min(forms) >= 2
    assert sum(forms) / len(forms) > 3.2  # strided scans have two forms, most families five or more
