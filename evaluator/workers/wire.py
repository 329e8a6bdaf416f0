"""Jobs and options of judges as JSON, both ways. A task travels as its id and a digest, since its reference is code."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from evaluator.judge import baseline
from evaluator.judge.job import Job
from evaluator.records import Limits, Mode
from evaluator.tasks.task import Task

# Field of a job -> what its JSON value may be.
_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "size": (str,),
    "completion": (bool,),
    "seed": (int, type(None)),
    "plain": (str, type(None)),
    "record": (int, float, type(None)),
    "timing": (bool,),
    "cases": (list, type(None)),
    "deadline_s": (int, float, type(None)),
    "device_name": (str, type(None)),
}
_OPTIONS = ("device", "mode", "seed", "limits")
_OWN = ("confinement", "gpu_confinement")  # limits that protect the evaluator's host: no learner may loosen them


class Unknown(ValueError):
    """A task that the other side does not have, or not in this form. The text says what to do."""


def digest(task: Task) -> str:
    """Identity of a task and of the plain program beside it: equal where both sides judge by the same."""
    text = json.dumps([dataclasses.asdict(task), baseline.plain_text(task.id)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def job_record(job: Job) -> dict[str, Any]:
    """A job without its key."""
    return {name: getattr(job, name) for name in _KINDS} | {"task": job.task.id, "task_digest": digest(job.task)}


def job_from(record: Mapping[str, Any], key: Any, tasks: Mapping[str, Task]) -> Job:
    """The job of a record, of one of `tasks`. Unknown: of none; ValueError: no record of a job."""
    fields = {name: _checked(record, name, kinds) for name, kinds in _KINDS.items()}
    for text in (fields["text"], fields["plain"] or ""):
        text.encode()  # ValueError: half of a surrogate pair, which is no text
    if fields["cases"] is not None:
        if not all(isinstance(case, str) for case in fields["cases"]):
            raise ValueError("a job whose cases are not names")
        fields["cases"] = tuple(fields["cases"])
    task_id = _checked(record, "task", (str,))
    if task_id not in tasks:
        raise Unknown(f"the evaluator has no task {task_id}: start it with --tasks-file=FILE that has it")
    task = tasks[task_id]
    if _checked(record, "task_digest", (str,)) != digest(task):
        raise Unknown(
            f"task {task_id} or its plain program differs between learner and evaluator: install the same version,"
            " with the same kernels/, on both"
        )
    if fields["size"] not in task.sizes:
        raise Unknown(f"task {task_id} has no size {fields['size']!r}; it has {', '.join(task.sizes)}")
    return Job(key=key, task=task, **fields)


def options_record(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a judge, but for limits that are the evaluator's own. ValueError: one that cannot travel."""
    if extra := sorted(options.keys() - set(_OPTIONS)):
        raise ValueError(f"options of a judge that cannot travel: {', '.join(extra)}")
    record = dict(options)
    if "limits" in record and record["limits"] is not None:
        limits = dataclasses.asdict(record["limits"])
        record["limits"] = {name: value for name, value in limits.items() if name not in _OWN}
    return record


def options_from(record: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a record. ValueError: no record of options."""
    if extra := sorted(record.keys() - set(_OPTIONS)):
        raise ValueError(f"unknown options of a judge: {', '.join(extra)}")
    options = dict(record)
    for name, kind in (("device", str), ("mode", str), ("seed", int)):
        if name in options:
            _checked(options, name, (kind,))
    if "mode" in options:
        options["mode"] = Mode(options["mode"])
    if options.get("limits") is not None:
        options["limits"] = _limits(_checked(options, "limits", (dict,)))
    return options


def _limits(record: Mapping[str, Any]) -> Limits:
    known = {name: value for name, value in vars(Limits()).items() if name not in _OWN}
    if record.keys() != known.keys():
        raise ValueError(f"limits with the fields {sorted(record)}, expected {sorted(known)}")
    values = dict(record)
    for name, example in known.items():
        kinds = (dict,) if name == "timing_s" else (bool,) if isinstance(example, bool) else (int, float)
        _checked(values, name, kinds)
    values["timing_s"] = {Mode(mode): float(seconds) for mode, seconds in values["timing_s"].items()}
    if values["timing_s"].keys() != set(Mode):
        raise ValueError("limits whose timing_s does not have every mode")
    return Limits(**values)


def _checked(record: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    """A field of one of `kinds`; in JSON true is no number."""
    if name not in record:
        raise ValueError(f"no field {name!r}")
    value = record[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ValueError(f"field {name!r} is {type(value).__name__}, expected {' or '.join(k.__name__ for k in kinds)}")
    return value
