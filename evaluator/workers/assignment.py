"""Which worker takes which waiting job next: one model of device for a task, fair shares, workloads in a row.

Nothing here starts, ends or talks to a worker.
"""

from collections.abc import Mapping, Sequence

from evaluator.judge.turns import next_of
from evaluator.workers.slot import QueuedJob, Slot

Models = Mapping[str, str]
"""Task id -> the model of device that judges the task."""


def next_assignment(
    slots: Sequence[Slot], waiting: Sequence[QueuedJob], models: Models
) -> tuple[Slot, QueuedJob] | None:
    """The worker with the fewest jobs that takes one, and which; None where none does."""
    left = list(waiting)
    for slot in sorted((each for each in slots if each.has_room), key=lambda each: len(each.held)):
        able = [each for each in left if wanted_model(each, models) in (None, slot.device_name)]
        suspect = next((each for each in able if each.suspect), None)
        if suspect is not None and not slot.held:
            return slot, suspect
        if suspect is not None:
            left.remove(suspect)  # this worker will take it, once it holds nothing
        elif able and _within_its_share(slot, slots, len(able)) and (chosen := _choose(slot, slots, able)) is not None:
            return slot, chosen
    return None


def wanted_model(queued: QueuedJob, models: Models) -> str | None:
    """The model of device that must judge a job; None: any may."""
    return queued.job.device_name or models.get(queued.job.task.id)


def _within_its_share(slot: Slot, slots: Sequence[Slot], able: int) -> bool:
    """Whether a worker that takes one more has no more than others of its model will have, those that start too."""
    peers = [each for each in slots if each.device_name in (None, slot.device_name)]
    return len(slot.held) * len(peers) < able + sum(len(each.held) for each in peers)


def _choose(slot: Slot, slots: Sequence[Slot], able: Sequence[QueuedJob]) -> QueuedJob | None:
    """What a worker with room takes next; None as long as it must first be done with what it holds."""
    elsewhere = {each.workload for each in slots if each is not slot}

    def rank(queued: QueuedJob) -> int:
        if queued.options != slot.options:
            return 3 if slot.held else 2
        return 0 if queued.job.workload == slot.workload else 2 if queued.job.workload in elsewhere else 1

    chosen = next_of(able, rank)
    return None if slot.held and chosen.options != slot.options else chosen
