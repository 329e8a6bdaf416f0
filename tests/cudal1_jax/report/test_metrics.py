import json
import struct

import pytest
from tensorboardX.proto.event_pb2 import Event

from cudal1_jax.report.metrics import MetricsLog


def scalars(folder):
    """(name, step, value) of every scalar in a folder's event files: records are length, checksum, bytes, checksum."""
    found = []
    for path in sorted(folder.glob("events.*")):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            content = content[16 + length :]
    return found


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_iteration_is_one_line_and_its_numbers_are_events(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path, []) as log:
        log.append({"step": 0, "tasks": ["1_019"], "reward/mean": 0.5})
        log.append({"step": 1, "tasks": ["1_023"], "reward/mean": 1.25})
    assert rows(path) == [
        {"step": 0, "tasks": ["1_019"], "reward/mean": 0.5},
        {"step": 1, "tasks": ["1_023"], "reward/mean": 1.25},
    ]
    assert scalars(tmp_path) == [("reward/mean", 0, 0.5), ("reward/mean", 1, 1.25)]


def test_lines_of_an_iteration_that_will_be_done_again_are_taken_back(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "x": 1.0}\n{"step": 1, "x": 2.0}\n{"step": 2, "x')
    with MetricsLog(path, [{"step": 0, "x": 1.0}]) as log:
        log.append({"step": 1, "x": 2.5})
    assert rows(path) == [{"step": 0, "x": 1.0}, {"step": 1, "x": 2.5}]


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with MetricsLog(path, []) as log:
        path.unlink()
        path.symlink_to("/dev/full")
        with pytest.raises(OSError, match="No space left on device"):
            log.append({"step": 0, "x": 1.0})
