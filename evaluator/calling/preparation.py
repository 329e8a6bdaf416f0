"""From a program and a call's shapes to something that runs: traced in the sandbox, compiled, and kept."""

import hashlib
import threading
from collections.abc import Sequence

from evaluator.calling.arguments import Form, arrays_of
from evaluator.calling.emulated import EmulatedProgram
from evaluator.calling.queued import QueuedProgram
from evaluator.calling.source import Source
from evaluator.devices.cuda import machine
from evaluator.program import plan as plans
from evaluator.program.screen import screen
from evaluator.program.trace import trace
from evaluator.records import Limits
from evaluator.tasks.task import Array

Prepared = EmulatedProgram | QueuedProgram


class Preparation:
    """The prepared forms of one program, by the shapes of its calls. For any number of threads."""

    def __init__(self, source: Source, limits: Limits | None = None, architecture: int | None = None):
        """`architecture`: of the GPU, 90 for sm_90; read off this machine's first one where it is not given."""
        self.source = source
        self._limits = limits or Limits.for_device(source.device)
        self._architecture = architecture
        self._lock = threading.Lock()
        self._known: dict[tuple[Form, ...], Prepared] = {}

    def of(self, forms: tuple[Form, ...]) -> Prepared:
        """The program for arguments of these shapes and dtypes. Raises Unverified, TypeError and ProgramFault."""
        known = self._known.get(forms)
        if known is not None:
            return known
        with self._lock:
            if forms not in self._known:
                self._known[forms] = self._prepared(arrays_of(self.source, forms))
            return self._known[forms]

    def key_of(self, prepared: Prepared) -> str:
        """Names what a call does, on its device and within its time, the same in every process."""
        text = f"{self.source.device}\n{self._limits.kernel_s}\n{plans.to_json(prepared.plan)}"
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

    def _prepared(self, arrays: Sequence[Array]) -> Prepared:
        screen(self.source.text, self._limits)
        inputs = [array for array in arrays if not array.parameter]
        parameters = [array for array in arrays if array.parameter]
        plan = trace(self.source.text, inputs, None, self._limits, parameters)
        if self.source.device == "cpu":
            return EmulatedProgram(plan, self._limits, self.source.name)
        return QueuedProgram(plan, self._architecture or _architecture(), self._limits)


def _architecture() -> int:
    driver = machine.driver()
    if driver is None or not driver.gpus:
        raise RuntimeError("device 'cuda' needs an NVIDIA GPU and its driver: there is none; pass device='cpu'")
    return driver.gpus[0].architecture
