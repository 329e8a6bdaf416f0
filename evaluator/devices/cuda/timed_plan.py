"""A plan recorded for timed replays, and what keeps these from remembering and from leaving work out. Needs CuPy."""

from collections.abc import Sequence
from typing import NamedTuple

import cupy as cp
import numpy as np

from evaluator import _core
from evaluator.devices.cuda import comparison
from evaluator.devices.cuda.buffers import GuardedBuffers
from evaluator.devices.cuda.execution import Executable
from evaluator.devices.cuda.recording import record
from evaluator.devices.poison import poison
from evaluator.program.dtypes import FLOAT_DTYPES


class Seal(NamedTuple):
    """Secret elements of one output that were poisoned."""

    bits: cp.ndarray
    seed: int
    word: np.ndarray


class TimedPlan:
    """A plan recorded as a graph, and the buffers that it was recorded on: they keep their addresses."""

    def __init__(
        self, device: _core.CudaDevice, timer: _core.CudaTimer, executable: Executable, buffers: GuardedBuffers
    ):
        self.buffers, self._plan = buffers, buffers.plan
        self._device, self._timer, self._executable = device, timer, executable
        self._graph: _core.CudaGraph | None = None
        self._turns: list[int] = []  # elements by which each input is turned; empty: as they were filled

    def fill_inputs(self, inputs: Sequence[cp.ndarray]) -> None:
        self._turns = []
        self.buffers.fill_inputs(inputs)

    def warm_up(self, seed: int) -> None:
        self.buffers.spread_poison(seed)
        self._executable.queue(self.buffers.addresses)  # library steps choose their algorithms outside the recording

    def record(self) -> None:
        self._graph, _ = record(self._device, lambda: self._executable.queue(self.buffers.addresses))

    def queue_timed(self) -> None:
        assert self._graph is not None
        self._timer.start()
        self._graph.launch()
        self._timer.stop()

    @property
    def turned(self) -> bool:
        """Whether the inputs hold other contents than they were filled with."""
        return bool(self._turns)

    def turn(self, inputs: Sequence[cp.ndarray], generator: np.random.Generator) -> None:
        """Fills every input anew, floats turned by a secret number of elements: nothing that a replay left stays."""
        self._turns = [
            int(generator.integers(buffer.size)) if buffer.dtype in FLOAT_DTYPES and buffer.size else 0
            for buffer in self._plan.inputs
        ]
        for number, (given, turn) in enumerate(zip(inputs, self._turns, strict=True)):
            flat, source = self.buffers.array(number).reshape(-1), given.reshape(-1)
            flat[: flat.size - turn] = source[turn:]
            flat[flat.size - turn :] = source[:turn]

    def contents(self, inputs: Sequence[cp.ndarray]) -> list[cp.ndarray]:
        """What the inputs should hold, made from those they were filled with: a replay may have written to them."""
        return [
            cp.concatenate((given.reshape(-1)[turn:], given.reshape(-1)[:turn])).reshape(given.shape)
            for given, turn in zip(inputs, self._turns, strict=True)
        ]

    def seal(self, generator: np.random.Generator) -> list[Seal]:
        """Poisons a few secret elements of every float output, before a replay that has to write them."""
        seals = []
        for view in self._plan.outputs:
            dtype = self._plan.dtype(view)
            if self.buffers.is_input(view) or view.size == 0 or dtype not in FLOAT_DTYPES:
                continue
            bits = self.buffers.bits(view.buffer)[view.offset : view.offset + view.size]
            one = Seal(bits, int(generator.integers(2**62)), poison(dtype, int(generator.integers(2**62))))
            comparison.seal(one.bits, one.seed, one.word)
            seals.append(one)
        return seals

    def count(self, seals: Sequence[Seal], left: cp.ndarray, strayed: cp.ndarray) -> None:
        """After a replay: adds to `left` [1] the sealed elements that it did not write, to `strayed` [1] bytes beside
        the buffers that it did. Queued, not waited for.
        """
        for one in seals:
            comparison.count_sealed(one.bits, one.seed, one.word, left)
        self.buffers.count_strayed(strayed)
