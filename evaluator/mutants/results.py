"""Results on disk: a line of JSON for the settings, then one for each program and each mutant."""

import dataclasses
import json
from pathlib import Path
from types import TracebackType
from typing import Any

from evaluator.mutants.exposure import Exposure
from evaluator.mutants.trial import Original, Settings, State, Trial
from evaluator.records import EVALUATOR_VERSION, Outcome

SCHEMA = 1


class WrongFile(Exception):
    """The file holds something else; the text says what to do."""


class Results:
    """What is known of programs and mutants, kept in a file where there is one. A context manager."""

    def __init__(self, settings: Settings, path: Path | None = None):
        """Reads what `path` holds but a last line that is cut off. WrongFile where that is not of these settings."""
        self.originals: dict[str, Original] = {}  # by digest
        self.trials: dict[str, Trial] = {}  # by id of the mutant
        self._file = None
        if path is None:
            return
        head = {"schema": SCHEMA, "evaluator_version": EVALUATOR_VERSION, "settings": dataclasses.asdict(settings)}
        kept = self._read(path, head) if path.exists() else 0
        self._file = path.open("ab")
        self._file.truncate(kept)
        if kept == 0:
            self._write(head)

    def __enter__(self) -> "Results":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, record: Original | Trial) -> None:
        """Keeps one record, on disk at once."""
        if isinstance(record, Original):
            self.originals[record.sha256] = record
            self._write({"original": dataclasses.asdict(record)})
        else:
            self.trials[record.id] = record
            self._write({"trial": dataclasses.asdict(record)})

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()

    def _read(self, path: Path, head: dict[str, Any]) -> int:
        """Takes in whole lines and gives their length in bytes."""
        data = path.read_bytes()
        kept = data.rfind(b"\n") + 1
        lines = data[:kept].splitlines()
        try:
            records = [json.loads(line) for line in lines]
            if records and records[0] != head:
                raise WrongFile(f"{path} was made with {records[0]}, this run has {head}; name another file")
            for record in records[1:]:
                self._take(record)
        except (ValueError, KeyError, TypeError) as error:
            raise WrongFile(f"{path} holds no results of mutants ({error}); name another file") from error
        return kept

    def _take(self, record: dict[str, Any]) -> None:
        if "original" in record:
            original = Original(**record["original"])
            self.originals[original.sha256] = original
            return
        fields = dict(record["trial"])
        fields["state"] = State(fields["state"])
        fields["outcome"] = None if fields["outcome"] is None else Outcome(fields["outcome"])
        fields["exposure"] = None if fields["exposure"] is None else Exposure(**fields["exposure"])
        trial = Trial(**fields)
        self.trials[trial.id] = trial


def to_json(trial: Trial) -> str:
    """One line: the trial's fields, and whether it was exposed and caught."""
    return json.dumps({**dataclasses.asdict(trial), "exposed": trial.exposed, "caught": trial.caught})
