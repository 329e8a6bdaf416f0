"""Records on disk: taken up again whatever had happened to the run that wrote them."""

import dataclasses

import pytest

from evaluator.baselines.record import to_json
from evaluator.baselines.store import Store, WrongFile, current, read
from evaluator.tasks import catalog


def test_what_was_stored_is_found_again(made_up, tmp_path):
    path = tmp_path / "b.jsonl"
    with Store(path) as store:
        store.add(made_up.record("torch"))
        store.add(made_up.failure("xla"))
    with Store(path) as store:
        assert store.find(made_up.subject("torch")) == made_up.record("torch")
        assert store.find(made_up.subject("xla")).error == "out of memory"
        assert store.find(made_up.subject("graph")) is None
        assert store.find(made_up.subject("torch", versions={"torch": "2.12.0", "driver": "580.1"})) is None


def test_a_record_is_on_disk_as_soon_as_it_is_added(made_up, tmp_path):
    with Store(tmp_path / "b.jsonl") as store:
        store.add(made_up.record())
        assert read(tmp_path / "b.jsonl") == [made_up.record()]


@pytest.mark.parametrize("kept", [0, 1])
def test_a_last_line_that_is_cut_off_goes_and_the_rest_stays(made_up, tmp_path, kept):
    path = tmp_path / "b.jsonl"
    whole = (to_json(made_up.record("graph")) + "\n") * kept
    path.write_text(whole + to_json(made_up.record("torch"))[:50])
    assert len(read(path)) == kept
    with Store(path) as store:
        assert store.find(made_up.subject("torch")) is None
        store.add(made_up.record("torch"))
    assert path.read_text() == whole + to_json(made_up.record("torch")) + "\n"


def test_of_equal_subjects_the_later_counts(made_up, tmp_path):
    with Store(tmp_path / "b.jsonl") as store:
        store.add(made_up.failure())
        store.add(made_up.record())
        assert store.find(made_up.subject()).ok
    assert read(tmp_path / "b.jsonl") == [made_up.record()]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "no line end", '{"schema": 1}\n'])
def test_another_file_is_refused_and_left_as_it_is(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(WrongFile, match="other"):
        Store(path)
    assert path.read_text() == text


def test_a_damaged_line_is_named(made_up, tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text(f"{to_json(made_up.record())}\n{to_json(made_up.record())[:-5]}\n{to_json(made_up.record())}\n")
    with pytest.raises(WrongFile, match="line 2"):
        read(path)


def test_a_file_that_cannot_be_used_is_one_message(tmp_path):
    with pytest.raises(WrongFile, match="name another file"):
        Store(tmp_path)
    with pytest.raises(WrongFile, match="evaluator baselines"):
        read(tmp_path / "none.jsonl")


def test_without_a_path_nothing_is_kept_beyond_the_run(made_up):
    with Store() as store:
        store.add(made_up.record())
        assert store.find(made_up.subject()) == made_up.record()


def test_records_of_a_task_that_has_changed_are_not_current(made_up):
    task = made_up.TASK
    mine = made_up.record()
    assert current([mine], catalog.TASKS) == [mine]
    for changed in (
        dataclasses.replace(task, source=task.source + "\n    return x\n"),
        dataclasses.replace(task, precision="tf32"),
        dataclasses.replace(task, sizes={"cpu": task.sizes["cpu"]}),
    ):
        assert current([mine], {task.id: changed}) == []
    assert current([mine], {}) == []
