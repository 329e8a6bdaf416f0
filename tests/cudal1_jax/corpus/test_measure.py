import json
from collections import deque

import pytest

from cudal1_jax.corpus import example, folder, generate
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
    folder.write_whole(folder.shard_path(tmp_path, "contest", 0), map(example.contest_json, made))
    return made


@pytest.fixture
def speedups(contests):
    """Rising with the place of a candidate in its contest: the last is the fastest."""
    return {sha256(program.text): 0.5 + place for each in contests for place, program in enumerate(each.candidates)}


def test_the_fastest_answers_and_the_slower_are_shown_slowest_first(contests, speedups, tmp_path):
    assert measure_with(tmp_path, ScriptedPool(speedups)) == 0
    made = list(folder.read_examples(tmp_path, ("contrastive",)))
    assert len(made) == 3
    for contest, each in zip(contests, made, strict=True):
        slow, middle, fast = contest.candidates
        assert each.program == fast.text
        assert each.prompt.index(slow.text.strip()) < each.prompt.index(middle.text.strip())
        assert "speed-up 0.50 (0.49 to 0.51)" in each.prompt
        assert fast.text.strip() not in each.prompt
        analysis, rest = each.completion.split("## Algorithm design")
        assert f"The first program {slow.trait}." in analysis
        assert f"The second program {middle.trait}." in analysis
        assert fast.design in rest


def test_a_contest_with_a_wrong_program_gives_no_example_and_is_counted(contests, speedups, tmp_path):
    speedups[sha256(contests[1].candidates[0].text)] = None
    assert measure_with(tmp_path, ScriptedPool(speedups)) == 1
    made = folder.read_examples(tmp_path, ("contrastive",))
    assert [each.number for each in made] == [contests[0].number, contests[2].number]


def test_nothing_is_measured_twice_after_a_stop(contests, speedups, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        measure_with(tmp_path, ScriptedPool(speedups, stop_after=4))
    with (tmp_path / MEASURED).open("a") as file:
        file.write('{"key": [2, "cut o')  # a kill in the middle of a line
    second = ScriptedPool(speedups)
    assert measure_with(tmp_path, second) == 0
    assert len(second.judged) == 9 - 4
    records = [json.loads(line) for line in (tmp_path / MEASURED).read_text().splitlines()]
    assert len({tuple(record["key"]) for record in records}) == len(records) == 9


def test_candidates_are_measured_against_the_plain_program_of_their_task(contests, speedups, tmp_path):
    pool = ScriptedPool(speedups)
    measure_with(tmp_path, pool)
    plain = {contest.task.id: contest.plain for contest in contests}
    assert all(job.plain == plain[job.task.id] and job.timing for job in pool.judged)
