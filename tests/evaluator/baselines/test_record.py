"""A record as a line of JSON, and what makes two records be about the same."""

import dataclasses
import json

import pytest

from evaluator.baselines.record import from_json, task_sha256, to_json
from evaluator.tasks import catalog

FIELDS = """schema task task_sha256 size device device_name baseline precision versions date median_us low_us high_us
    samples clock error""".split()  # noqa: SIM905


def test_a_record_comes_back_as_it_was(made_up):
    for record in (made_up.record(), made_up.failure()):
        assert from_json(to_json(record)) == record
        assert list(json.loads(to_json(record))) == FIELDS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema 1"),
        ({"median_us": None}, "expected times in order"),
        ({"median_us": "fast"}, "expected times in order"),
        ({"low_us": 101.0}, "expected times in order"),
        ({"low_us": 0.0}, "expected times in order"),
        ({"versions": "2.11"}, "versions are an object"),
        ({"date": None}, "are texts"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_another_object_is_refused_with_what_is_wrong(made_up, change, message):
    fields = {**json.loads(to_json(made_up.record())), **change}
    with pytest.raises(ValueError, match=message):
        from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"schema": 1}'])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(ValueError, match="not a record of a baseline"):
        from_json(text)


def test_every_field_of_a_subject_tells_it_from_others(made_up):
    subject = made_up.subject()
    for field in dataclasses.fields(subject):
        other = {"torch": "2.12.0"} if field.name == "versions" else "another"
        assert dataclasses.replace(subject, **{field.name: other}).key != subject.key
    turned = dict(reversed(subject.versions.items()))
    assert dataclasses.replace(subject, versions=turned).key == subject.key


def test_a_tasks_digest_follows_its_text_and_its_arrays():
    task = catalog.get("1_019")
    assert task_sha256(task, "cpu") != task_sha256(task, "kb")
    other = dataclasses.replace(task, source=task.source + "\n# otherwise\n")
    assert task_sha256(other, "kb") != task_sha256(task, "kb")
    assert task_sha256(dataclasses.replace(task, family="elsewhere"), "kb") == task_sha256(task, "kb")
