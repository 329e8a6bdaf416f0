"""The bytes beside a plan's buffers: what lies there says whether a program wrote to them, or made use of them.

No page begins behind an odd end, since vectors of 16 bytes are allowed: up to 15 bytes there can be read. So what lies
there is other than before in every judged run, and never what a program could overlook.
"""

import numpy as np

from evaluator.devices.layout import ALIGNMENT_BYTES, SharedBuffers
from evaluator.devices.poison import FRACTION_BITS, numpy_dtype
from evaluator.program.plan import Plan

POSITIVE, NEGATIVE, NAN = KINDS = range(3)  # large numbers: no sum, extremum or product with zero overlooks all three


class Canaries:
    """Laid anew before each judged run, and looked at after every run."""

    def __init__(self, plan: Plan, buffers: SharedBuffers):
        self._plan, self._buffers = plan, buffers
        self._guard = "right"
        self._words: list[np.ndarray] = []  # of each buffer, as it was laid

    @property
    def odd_ends(self) -> bool:
        """Whether any buffer ends where no guard page can begin."""
        return any(buffer.nbytes % ALIGNMENT_BYTES for buffer in self._plan.buffers)

    def lay(self, guard: str, kind: int, seed: int) -> None:
        """Fills the slack of every buffer with a word of its own, so that copying from one to the other shows."""
        self._guard = guard
        self._words = [_word(buffer.dtype, kind, seed, number) for number, buffer in enumerate(self._plan.buffers)]
        for number, word in enumerate(self._words):
            for part in self._buffers.slack(number, guard):
                part.view(word.dtype)[:] = word

    def disturbed(self) -> str | None:
        """What was written beside a buffer, None where nothing was or no canary was laid."""
        for number, word in enumerate(self._words):
            before, behind = self._buffers.slack(number, self._guard)
            for part, place in ((before, "before the start"), (behind, "past the end")):
                if np.any(part.view(word.dtype) != word):
                    changed = np.flatnonzero(part != np.resize(word.view(np.uint8), part.size))
                    distance = len(before) - changed[-1] if part is before else changed[0]
                    name = self._plan.buffers[number].name
                    return f"write {distance} bytes {place} of buffer {name!r}, seen after the run"
        return None


def _word(dtype: str, kind: int, seed: int, number: int) -> np.ndarray:
    """One element, as an unsigned integer of its width."""
    generator = np.random.Generator(np.random.Philox(key=np.array([seed & (2**64 - 1), number], np.uint64)))
    width, random = numpy_dtype(dtype).itemsize, int(generator.integers(2**63))
    sign, bits = int(kind == NEGATIVE), 8 * width - 1
    if dtype in FRACTION_BITS:  # an exponent in the third quarter of the upper half
        fraction = FRACTION_BITS[dtype]
        exponents = 1 << (bits - fraction)
        exponent = exponents - 1 if kind == NAN else 3 * exponents // 4 + random % (exponents // 8)
        word = exponent << fraction | 1 << (fraction - 1) | (random >> 8) % (1 << (fraction - 1))
    else:  # of the upper half of what the type holds; nothing that a bool could be
        word = 1 << (bits - 1) | random % (1 << (bits - 1))
    return np.frombuffer((sign << bits | word).to_bytes(width, "little"), dtype=f"u{width}")
