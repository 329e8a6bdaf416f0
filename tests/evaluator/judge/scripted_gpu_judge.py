"""A judge of device `cuda` without a GPU: tracer and NVRTC are real, the process that has the GPU is scripted."""

import scripted_gpu

from evaluator.judge.gpu_process import GpuProcess
from evaluator.judge.ladder import Judge


class ScriptedGpuJudge(Judge):
    def __init__(self, **options):
        super().__init__(**options)
        self._bench = GpuProcess(self.limits, process_main=scripted_gpu.obedient)
