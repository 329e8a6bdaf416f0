"""The memory of a run: an SQLite file that survives a kill at any moment and never counts a verdict twice.

Every method is one transaction and may be repeated: what is already there stays as it was. Readers get records in
(step, sample) order, never in order of arrival, so that a resumed run sees what an uninterrupted one saw.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from cudal1_jax.contrastive.records import SEED_STEP, HackCase, Judged, Prompt, Sample
from evaluator.judge import verdict_json
from evaluator.records import Verdict

APPLICATION_ID = 0x43554C31  # "CUL1", written into the file's header: tells our files from other people's
SCHEMA_VERSION = 1
SCHEMA = Path(__file__).with_name("schema.sql")
LOCK_WAIT_S = 30.0
LAST_STEP = 2**62  # above every step


class StoreError(Exception):
    """The store cannot be opened or written; the text says what to do. What was recorded stays recorded."""


class Store:
    """One connection to a run's store; a context manager. Not for sharing between threads."""

    def __init__(self, path: Path):
        """Open the store at `path`, creating it if absent. StoreError: corrupt, foreign or newer file, full disk."""
        self.path = path
        is_new = not path.exists() or path.stat().st_size == 0
        with self._advice():
            self._connection = sqlite3.connect(path, timeout=LOCK_WAIT_S, isolation_level=None)
        try:
            with self._advice():
                if not is_new:
                    self._check_identity()
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                with self._transaction() as cursor:
                    self._create_tables(cursor)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; later calls fail."""
        self._connection.close()

    # Writing

    def record_rollout(self, step: int, prompts: Sequence[Prompt], samples: Sequence[Sample]) -> None:
        """Keep an iteration's prompts and samples together: all or none of them are there after a crash."""
        with self._transaction() as cursor:
            if cursor.execute("SELECT 1 FROM samples WHERE step = ?", (step,)).fetchone():
                return
            cursor.executemany(
                "INSERT INTO prompts VALUES (?, ?, ?, ?)", [(step, p.prompt, p.task, p.text) for p in prompts]
            )
            cursor.executemany(
                "INSERT INTO lineage VALUES (?, ?, ?, ?)",
                [(step, p.prompt, place, sha256) for p in prompts for place, sha256 in enumerate(p.exemplars)],
            )
            cursor.executemany(
                "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (step, s.sample, s.prompt, s.text, _blob(s.tokens, "<i4"), _blob(s.logprobs, "<f4"), s.finished)
                    for s in samples
                ],
            )

    def record_verdict(self, step: int, sample: int, program: str, name: str, verdict: Verdict) -> None:
        """Keep the verdict on one sample, and the program; the first verdict on (step, sample) stands for ever.

        StoreError: it would be compared with verdicts from another model of device.
        """
        with self._transaction() as cursor:
            self._refuse_mixing(cursor, verdict)
            if program:
                cursor.execute(
                    "INSERT OR IGNORE INTO programs VALUES (?, ?, ?)", (verdict.program_sha256, verdict.task, program)
                )
            cursor.execute(
                "INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    step,
                    sample,
                    verdict.task,
                    verdict.program_sha256,
                    name,
                    verdict.outcome,
                    verdict_json.to_json(verdict),
                ),
            )

    def _refuse_mixing(self, cursor: sqlite3.Cursor, verdict: Verdict) -> None:
        """Whatever compares programs of a task reads them from here: exemplars, records, rewards, the best of a run."""
        if not verdict.ok or not verdict.device_name:
            return
        others = cursor.execute(
            "SELECT json_extract(json, '$.device_name') AS model FROM verdicts"
            " WHERE task = ? AND outcome = 'ok' AND model NOT IN ('', ?) LIMIT 1",
            (verdict.task, verdict.device_name),
        ).fetchone()
        if others is not None:
            raise StoreError(
                f"task {verdict.task} was judged on {others[0]} so far and now on {verdict.device_name}, and figures of"
                f" two devices do not compare: go on where there is a {others[0]}, or begin again with --fresh"
            )

    def record_hack(self, case: HackCase) -> None:
        """Keep a program that scored without earning it."""
        with self._transaction() as cursor:
            cursor.execute("INSERT OR IGNORE INTO hack_cases VALUES (?, ?, ?)", (case.task, case.sha256, case.reason))

    def record_metrics(self, step: int, metrics: dict[str, Any]) -> None:
        """Keep the metrics of an iteration; an iteration that is done again writes the same ones again."""
        with self._transaction() as cursor:
            cursor.execute(
                "INSERT INTO iterations VALUES (?, ?) ON CONFLICT (step) DO UPDATE SET metrics = excluded.metrics",
                (step, json.dumps(metrics)),
            )

    # Reading

    def rollout(self, step: int) -> tuple[list[Prompt], list[Sample]] | None:
        """The prompts and samples recorded for an iteration, or None."""
        shown: dict[int, list[str]] = {}
        for prompt, sha256 in self._rows(
            "SELECT prompt, sha256 FROM lineage WHERE step = ? ORDER BY prompt, place", step
        ):
            shown.setdefault(prompt, []).append(sha256)
        prompts = [
            Prompt(prompt=number, task=task, text=text, exemplars=tuple(shown.get(number, ())))
            for number, task, text in self._rows(
                "SELECT prompt, task, text FROM prompts WHERE step = ? ORDER BY prompt", step
            )
        ]
        samples = [
            Sample(
                sample=sample,
                prompt=prompt,
                text=text,
                tokens=np.frombuffer(tokens, "<i4").astype(np.int32),
                logprobs=np.frombuffer(logprobs, "<f4").astype(np.float32),
                finished=bool(finished),
            )
            for sample, prompt, text, tokens, logprobs, finished in self._rows(
                "SELECT sample, prompt, text, tokens, logprobs, finished FROM samples WHERE step = ? ORDER BY sample",
                step,
            )
        ]
        return (prompts, samples) if samples else None

    def judged(self, *, first_step: int = SEED_STEP, end_step: int | None = None) -> list[Judged]:
        """Verdicts of iterations first_step <= step < end_step (None: all), by step and sample."""
        rows = self._rows(
            "SELECT v.step, v.sample, v.task, COALESCE(p.text, ''), v.name, v.json FROM verdicts v"
            " LEFT JOIN programs p ON p.task = v.task AND p.sha256 = v.sha256"
            " WHERE v.step >= ? AND v.step < ? ORDER BY v.step, v.sample",
            first_step,
            LAST_STEP if end_step is None else end_step,
        )
        return [
            Judged(
                step=step,
                sample=sample,
                task=task,
                program=program,
                name=name,
                verdict=verdict_json.from_json(verdict),
            )
            for step, sample, task, program, name, verdict in rows
        ]

    def hack_cases(self) -> list[HackCase]:
        """Every confirmed hack, with its text."""
        rows = self._rows(
            "SELECT h.task, h.sha256, COALESCE(p.text, ''), h.reason FROM hack_cases h"
            " LEFT JOIN programs p ON p.task = h.task AND p.sha256 = h.sha256 ORDER BY h.task, h.sha256"
        )
        return [HackCase(task=task, sha256=sha256, program=text, reason=why) for task, sha256, text, why in rows]

    def metrics(self, end_step: int | None = None) -> list[dict[str, Any]]:
        """Metrics of the iterations before `end_step` (None: all), in order."""
        end = LAST_STEP if end_step is None else end_step
        rows = self._rows("SELECT metrics FROM iterations WHERE step < ? ORDER BY step", end)
        return [json.loads(text) for (text,) in rows]

    # Opening and failing

    def _check_identity(self) -> None:
        (identity,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if identity != APPLICATION_ID:
            raise StoreError(
                f"{self.path} is an SQLite file of another program (application id {identity:#x}, expected"
                f" {APPLICATION_ID:#x}): choose another --run, or move the file away"
            )
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema {version}, this program reads {SCHEMA_VERSION}: continue the run with the"
                " version that began it, or start another with --fresh"
            )
        (finding,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if finding != "ok":
            raise sqlite3.DatabaseError(finding)

    def _create_tables(self, cursor: sqlite3.Cursor) -> None:
        if cursor.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,):
            return
        # executescript would commit before it begins, and a kill in between would leave half a schema
        for statement in _statements(SCHEMA.read_text(encoding="utf-8")):
            cursor.execute(statement)
        cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        cursor.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        with self._advice():
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has rolled back by itself
                    cursor.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *arguments: int) -> list[tuple]:
        with self._advice():
            return self._connection.execute(query, arguments).fetchall()

    @contextlib.contextmanager
    def _advice(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code == sqlite3.SQLITE_FULL:
                raise StoreError(
                    f"no room left to write {self.path}: free some space and give the same command again;"
                    " everything recorded so far is kept"
                ) from error
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(
                    f"{self.path} cannot be used ({error}): see that it can be written and that no other process"
                    " works on this run, then give the same command again"
                ) from error
            raise StoreError(
                f"{self.path} is not a readable store ({error}): put back a copy of it, or move it away and begin"
                " again with --fresh; it has not been changed"
            ) from error


def _statements(script: str) -> list[str]:
    lines = [line.split("--")[0] for line in script.splitlines()]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def _blob(values: np.ndarray, dtype: str) -> bytes:
    return np.asarray(values, dtype).tobytes()
