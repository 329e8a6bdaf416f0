import collections
import dataclasses
import json
import re
from collections import deque

import pytest

from cudal1_jax.corpus import example, folder, generate
from cudal1_jax.corpus.example import stream_digest
from cudal1_jax.corpus.measure import MEASURED, measure_with
from evaluator.program.identity import sha256
from evaluator.records import Outcome
from tests.cudal1_jax.conftest import make_verdict


class ScriptedPool:
    """Judges by a table from text to speed-up; None is a wrong program."""

    def __init__(self, speedups, stop_after=None):
        self.speedups, self.stop_after = speedups, stop_after
        self.waiting, self.judged = deque(), []

    def submit(self, job):
        self.waiting.append(job)

    def completed(self):
        while self.waiting:
            if self.stop_after == len(self.judged):
                raise KeyboardInterrupt
            job = self.waiting.popleft()
            self.judged.append(job)
            value = self.speedups[sha256(job.text)]
            outcome = Outcome.WRONG_VALUE if value is None else Outcome.OK
            yield job, make_verdict(job.text, value, outcome)


@pytest.fixture
def contests(tmp_path):
    made = generate.contests(0, 0, 3, frozenset(), lambda text: True)
    folder.write_lines(folder.shard_path(tmp_path, "contest", 0), map(example.contest_json, made))
    return made


@pytest.fixture
def speedups(contests):
    """Rising with the place of a candidate in its contest: the last is the fastest."""
    return {sha256(program.text): 0.5 + place for each in contests for place, program in enumerate(each.candidates)}


def shown_and_answer(each, contest):
    """Places of the programs in the prompt, in its order, and of the one that answers; compared by token stream."""
    places = {stream_digest(program.text): place for place, program in enumerate(contest.candidates)}
    blocks = re.findall(r"```python\n(.*?)```", each.prompt, re.DOTALL)
    return [places[stream_digest(block)] for block in blocks], places[each.stream]


def test_slower_programs_are_shown_slowest_first_and_a_faster_one_answers(contests, speedups, tmp_path):
    assert measure_with(tmp_path, ScriptedPool(speedups), 8) == 0
    made = list(folder.read_examples(tmp_path, ("contrastive",)))
    assert len(made) == 3 * 8
    for each in made:
        contest = contests[each.number // 100]
        shown, answer = shown_and_answer(each, contest)
        assert shown == sorted(shown)
        assert shown[-1] < answer
        assert f"speed-up {0.5 + shown[0]:.2f} (" in each.prompt
        analysis, rest = each.completion.split("## Algorithm design")
        assert f"The first program {contest.candidates[shown[0]].trait}." in analysis
        assert contest.candidates[answer].design in rest


def test_no_program_answers_most_examples_of_its_contest(contests, speedups, tmp_path):
    measure_with(tmp_path, ScriptedPool(speedups), 8)
    answers = collections.Counter((e.number // 100, e.stream) for e in folder.read_examples(tmp_path, ("contrastive",)))
    assert max(answers.values()) <= example.ANSWERS + 1
    texts = [each.completion for each in folder.read_examples(tmp_path, ("contrastive",))]
    assert len(set(texts)) > len(texts) * 0.9  # the same program in other words


def test_a_program_no_faster_than_its_noise_answers_nothing(contests, tmp_path):
    equal = {sha256(program.text): 1.0 for each in contests for program in each.candidates}
    measure_with(tmp_path, ScriptedPool(equal), 8)
    assert list(folder.read_examples(tmp_path, ("contrastive",))) == []


def test_a_wrong_program_is_neither_shown_nor_answers_and_is_counted(contests, speedups, tmp_path):
    speedups[sha256(contests[1].candidates[5].text)] = None
    assert measure_with(tmp_path, ScriptedPool(speedups), 8) == 1
    of_it = [e for e in folder.read_examples(tmp_path, ("contrastive",)) if e.number // 100 == 1]
    assert of_it
    for each in of_it:
        shown, answer = shown_and_answer(each, contests[1])
        assert 5 not in (*shown, answer)


def test_right_programs_of_kernels_are_examples_without_exemplars_too(speedups, contests, tmp_path):
    contest = dataclasses.replace(contests[0], kernels=True)
    folder.write_lines(folder.shard_path(tmp_path, "contest", 0), [example.contest_json(contest)])
    speedups[sha256(contest.candidates[2].text)] = None
    pool = ScriptedPool(speedups)
    measure_with(tmp_path, pool, 8)
    made = list(folder.read_examples(tmp_path, ("variant",)))
    assert [each.program for each in made] == [p.text for i, p in enumerate(contest.candidates) if i != 2]
    assert all("speed-up" not in each.prompt.split("## Task")[1].split("## Answer")[0] for each in made)
    assert all(job.cases is None for job in pool.judged)  # judged in every case, since nobody else verifies them


def test_nothing_is_measured_twice_after_a_stop(contests, speedups, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        measure_with(tmp_path, ScriptedPool(speedups, stop_after=4), 8)
    with (tmp_path / MEASURED).open("a") as file:
        file.write('{"key": [2, "cut o')  # a kill in the middle of a line
    second = ScriptedPool(speedups)
    assert measure_with(tmp_path, second, 8) == 0
    assert len(second.judged) == 18 - 4
    records = [json.loads(line) for line in (tmp_path / MEASURED).read_text().splitlines()]
    assert len({tuple(record["key"]) for record in records}) == len(records) == 18


def test_candidates_are_measured_against_the_plain_program_of_their_task(contests, speedups, tmp_path):
    pool = ScriptedPool(speedups)
    measure_with(tmp_path, pool, 8)
    plain = {contest.task.id: contest.plain for contest in contests}
    assert all(job.plain == plain[job.task.id] and job.timing for job in pool.judged)


def test_a_fault_of_the_judge_is_tried_again_in_the_same_run(contests, speedups, tmp_path):
    class FaultyOnce(ScriptedPool):
        def completed(self):
            for job, verdict in super().completed():
                first = len(self.judged) == 1
                yield job, dataclasses.replace(verdict, outcome=Outcome.EVALUATOR_ERROR) if first else verdict

    pool = FaultyOnce(speedups)
    assert measure_with(tmp_path, pool, 8) == 0
    assert len(pool.judged) == 18 + 1
    assert pool.judged[-1].key == pool.judged[0].key
