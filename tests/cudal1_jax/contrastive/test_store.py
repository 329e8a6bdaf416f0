import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from cudal1_jax.contrastive.records import SEED_STEP, HackCase, Prompt, Sample
from cudal1_jax.contrastive.store import Store, StoreError
from evaluator.records import Outcome


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def sample(number, text="text", length=3):
    logprobs = -np.arange(length, dtype=np.float32) / 3
    return Sample(number, 0, text, np.arange(length, dtype=np.int32), logprobs, finished=number % 2 == 0)


def test_a_rollout_comes_back_as_it_was_recorded(path):
    prompts = [Prompt(0, "1_019", "ask", ("aa", "bb")), Prompt(1, "1_023", "ask again", ())]
    samples = [sample(0, "naïve \0 \u2603"), sample(1, length=0)]
    with Store(path) as store:
        store.record_rollout(4, prompts, samples)
    with Store(path) as store:
        read_prompts, read_samples = store.rollout(4)
        assert store.rollout(3) is None
    assert read_prompts == prompts
    assert [s.text for s in read_samples] == [s.text for s in samples]
    assert [s.finished for s in read_samples] == [True, False]
    for read, written in zip(read_samples, samples, strict=True):
        np.testing.assert_array_equal(read.tokens, written.tokens)
        np.testing.assert_array_equal(read.logprobs, written.logprobs)
        assert (read.tokens.dtype, read.logprobs.dtype) == (np.int32, np.float32)


def test_a_rollout_recorded_again_keeps_the_first(path):
    with Store(path) as store:
        store.record_rollout(0, [Prompt(0, "t", "first", ())], [sample(0, "first")])
        store.record_rollout(0, [Prompt(0, "t", "second", ("x",))], [sample(0, "second")])
        prompts, samples = store.rollout(0)
    assert (prompts[0].text, prompts[0].exemplars, samples[0].text) == ("first", (), "first")


def test_a_verdict_recorded_twice_counts_once_and_the_first_stands(path, verdict):
    with Store(path) as store:
        store.record_verdict(0, 3, "a", "", verdict("a", 1.5))
        store.record_verdict(0, 3, "b", "", verdict("b", 9.0))
        judged = store.judged()
    assert [(entry.program, entry.verdict.speedup) for entry in judged] == [("a", 1.5)]


def test_verdicts_are_read_by_step_and_sample_whatever_their_arrival(path, verdict):
    with Store(path) as store:
        for step, number in [(1, 0), (0, 1), (SEED_STEP, 2), (0, 0)]:
            store.record_verdict(step, number, f"{step} {number}", "", verdict(f"{step} {number}"))
        assert [(e.step, e.sample) for e in store.judged()] == [(SEED_STEP, 2), (0, 0), (0, 1), (1, 0)]
        assert [e.step for e in store.judged(end_step=1)] == [SEED_STEP, 0, 0]
        assert [e.step for e in store.judged(first_step=1, end_step=2)] == [1]


def test_a_completion_without_a_program_has_a_verdict_and_no_text(path, verdict):
    with Store(path) as store:
        store.record_verdict(0, 0, "", "", verdict("", outcome=Outcome.NO_PROGRAM, program_sha256=""))
        (entry,) = store.judged()
    assert entry.program == ""
    assert entry.verdict.outcome is Outcome.NO_PROGRAM


def test_a_hack_case_keeps_its_program_and_reason(path, verdict):
    hack = verdict("cheat", outcome=Outcome.NOT_REPRODUCED)
    with Store(path) as store:
        store.record_verdict(0, 0, "cheat", "", hack)
        case = HackCase("1_019", hack.program_sha256, "cheat", "9.1x, then 1.0x")
        store.record_hack(case)
        store.record_hack(case)
        assert store.hack_cases() == [case]


def test_metrics_of_an_iteration_done_again_replace_the_old_ones(path):
    with Store(path) as store:
        store.record_metrics(0, {"step": 0, "reward": 1.0})
        store.record_metrics(1, {"step": 1, "reward": 2.0})
        store.record_metrics(1, {"step": 1, "reward": 3.0})
        assert store.metrics(end_step=2) == [{"step": 0, "reward": 1.0}, {"step": 1, "reward": 3.0}]
        assert store.metrics(end_step=1) == [{"step": 0, "reward": 1.0}]


@pytest.mark.parametrize("content", [b"not a database " * 300, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_corrupt_file_is_refused_with_advice_and_left_as_it_was(path, content):
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is not a readable store .*: put back a copy of it, or move it away"):
        Store(path)
    assert path.read_bytes() == content


def test_a_damaged_page_is_found_on_opening(path, verdict):
    with Store(path) as store:
        for number in range(200):
            store.record_verdict(0, number, f"p{number}" * 50, "", verdict(f"p{number}"))
    content = bytearray(path.read_bytes())
    assert len(content) > 20_000
    content[8192:12288] = b"\xa5" * 4096
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not a readable store"):
        Store(path)


def test_a_database_of_another_program_is_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE verdicts (x)")
    connection.close()
    with pytest.raises(StoreError, match="is an SQLite file of another program"):
        Store(path)


def test_a_store_of_another_schema_is_refused(path):
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="has schema 99, this program reads 1"):
        Store(path)


def test_a_full_disk_is_one_clear_error_and_loses_nothing(path, verdict):
    with Store(path) as store:
        store.record_verdict(0, 0, "kept", "", verdict("kept"))
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")  # what SQLite meets on a full disk: SQLITE_FULL
        with pytest.raises(StoreError, match=r"no room left to write .*store.sqlite: free some space"):
            store.record_verdict(0, 1, "x" * 100_000, "", verdict("x"))
        assert store.judged()[0].program == "kept"
    with Store(path) as store:
        assert [e.program for e in store.judged()] == ["kept"]
        store.record_verdict(0, 1, "x" * 100_000, "", verdict("x"))
        assert len(store.judged()) == 2


def test_a_file_that_cannot_be_opened_says_what_to_look_at(tmp_path):
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "absent" / "store.sqlite")


WRITER = """
    import sys
    sys.path.insert(0, sys.argv[2])
    from pathlib import Path
    from conftest import make_verdict
    from cudal1_jax.contrastive.store import Store
    with Store(Path(sys.argv[1])) as store:
        for number in range(1_000_000):
            store.record_verdict(0, number, f"p{number}" * 100, "", make_verdict(f"p{number}"))
            print(number, flush=True)
"""


@pytest.mark.parametrize("survivors", [1, 7, 23])
def test_what_was_recorded_before_a_kill_is_there_after_it(path, survivors):
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path), os.path.dirname(os.path.dirname(__file__))],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(survivors):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with Store(path) as store:
        recorded = [entry.sample for entry in store.judged()]
    assert recorded == list(range(len(recorded)))
    assert len(recorded) > last
