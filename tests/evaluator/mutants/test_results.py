"""Results on disk are taken up again, and nothing else is."""

import dataclasses
import json

import pytest

from evaluator.mutants.exposure import Exposure
from evaluator.mutants.results import Results, WrongFile
from evaluator.mutants.trial import Original, Settings, State, Trial
from evaluator.records import Outcome

ORIGINAL = Original("1_019/plain.py", "abc", 5.5, None)
TRIAL = Trial(
    "id1",
    "1_019/plain.py",
    "1_019",
    "tie_breaking",
    12,
    "v < 0",
    "v <= 0",
    State.TRIED,
    Outcome.WRONG_VALUE,
    "seen 1, expected 2",
    Exposure("ramp", 5, "random", "value", float("inf")),
    0.5,
)
SAME = dataclasses.replace(TRIAL, id="id2", state=State.SAME_CODE, outcome=None, exposure=None)
SETTINGS = Settings(seed=3)


@pytest.fixture
def path(tmp_path):
    with Results(SETTINGS, tmp_path / "results.jsonl") as results:
        for record in (ORIGINAL, TRIAL, SAME):
            results.add(record)
    return tmp_path / "results.jsonl"


def test_a_file_gives_back_what_was_added(path):
    with Results(SETTINGS, path) as again:
        assert again.originals == {"abc": ORIGINAL}
        assert again.trials == {"id1": TRIAL, "id2": SAME}


def test_a_last_line_that_is_cut_off_is_done_again_and_the_rest_stays(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with Results(SETTINGS, path) as again:
        assert set(again.trials) == {"id1"}
        again.add(SAME)
    assert path.read_bytes() == whole


def test_a_file_cut_off_in_its_first_line_is_begun_again(path):
    path.write_bytes(path.read_bytes()[:20])
    with Results(SETTINGS, path) as again:
        assert again.trials == {}
    assert json.loads(path.read_text())["settings"]["seed"] == 3


def test_results_of_other_settings_are_refused_and_left_alone(path):
    before = path.read_bytes()
    with pytest.raises(WrongFile, match="name another file"):
        Results(Settings(seed=4), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["no json\n", "[]\n", '{"schema": 1}\n{"trial": {}}\n'])
def test_a_foreign_file_is_refused(tmp_path, text):
    foreign = tmp_path / "foreign"
    foreign.write_text(text)
    with pytest.raises(WrongFile, match="name another file"):
        Results(SETTINGS, foreign)
    assert foreign.read_text() == text


def test_a_line_without_its_fields_is_refused(path):
    with path.open("a") as file:
        file.write('{"trial": {"id": "id3"}}\n')
    with pytest.raises(WrongFile, match="holds no results of mutants"):
        Results(SETTINGS, path)


def test_without_a_file_results_are_kept_in_memory():
    with Results(SETTINGS) as results:
        results.add(TRIAL)
        assert results.trials == {"id1": TRIAL}
