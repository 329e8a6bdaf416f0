"""Which sample is drawn in which slot, and which prompts are resident: plain bookkeeping between two chunks.

Rows, one for each sample, wait in prompt order. A row that ends frees its slot for the next; a prompt whose last row
ends frees its prompt slot. Nothing here changes what a row comes out as.
"""

import dataclasses

import numpy as np

IDLE = -1


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The static shapes of a rollout."""

    slots: int  # S, rows decoded together
    prompt_slots: int  # prompts resident at a time
    members: int  # C, slots that one prompt may have at a time


def sizes(prompts: int, group: int, slots: int) -> Sizes:
    """Shapes for N prompts of G rows in at most `slots` slots.

    Two prompts more than fill the slots: long rows of earlier ones can finish, and further prompt slots save no steps.
    """
    rows = min(slots, prompts * group)
    return Sizes(rows, min(prompts, -(-rows // group) + 2), min(group, rows))


class Schedule:
    """Rows in slots. Row r is sample r % group of prompt r // group."""

    def __init__(self, prompts: int, group: int, shape: Sizes) -> None:
        self.shape = shape
        self.row = np.full(shape.slots, IDLE)  # [S], the row drawn in each slot
        self.begin = np.zeros(shape.slots, np.int32)  # [S], step at which it began
        self.resident = np.full(shape.prompt_slots, IDLE)  # the prompt in each prompt slot
        self.ended = np.zeros(prompts * group, bool)  # [N G], rows that have ended
        self._group = group
        self._next = 0  # first row that waits

    @property
    def live(self) -> np.ndarray:
        """[S] bool, slots with a row."""
        return self.row != IDLE

    def unfinished(self) -> bool:
        return not np.all(self.ended)

    def fill(self, step: int) -> list[tuple[int, int]]:
        """Puts waiting rows into idle slots, where they begin at `step`: (prompt slot, prompt) that must be prefilled.

        Rows keep their order: none passes one whose prompt finds no prompt slot yet.
        """
        prefill = []
        for slot in np.flatnonzero(~self.live):
            if self._next == len(self.ended):
                break
            prompt = self._next // self._group
            if prompt not in self.resident:
                free = np.flatnonzero(self.resident == IDLE)
                if not len(free):
                    break
                self.resident[free[0]] = prompt
                prefill.append((int(free[0]), prompt))
            self.row[slot], self.begin[slot] = self._next, step
            self._next += 1
        return prefill

    def release(self, ended: np.ndarray) -> None:
        """Frees the slots [S] bool whose rows have ended, and the prompt slots that nothing needs any more."""
        self.ended[self.row[ended & self.live]] = True
        self.row[ended] = IDLE
        whole = np.all(self.ended.reshape(-1, self._group), axis=1)  # [N], prompts that have ended
        self.resident[(self.resident != IDLE) & whole[self.resident]] = IDLE

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Prompt [S] and sample within it [S] of the row in each slot; 0 where a slot is idle."""
        row = np.where(self.live, self.row, 0)
        return row // self._group, row % self._group

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Prompt slot [S] of each slot, its place [S] among the slots of that prompt, and those slots [prompts, C]."""
        prompt, place = np.zeros((2, self.shape.slots), np.int32)
        members = np.zeros((self.shape.prompt_slots, self.shape.members), np.int32)
        owner = np.where(self.live, self.row // self._group, IDLE)
        for number, resident in enumerate(self.resident):
            slots = np.flatnonzero((owner == resident) & self.live)
            prompt[slots], place[slots] = number, np.arange(len(slots))
            members[number, : len(slots)] = slots
        return prompt, place, members
