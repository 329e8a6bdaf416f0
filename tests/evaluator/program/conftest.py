"""Fixtures that trace a `forward` given by its body."""

import json

import pytest

from evaluator.program.plan import to_json
from evaluator.program.screen import screen
from evaluator.program.trace import Tracer
from evaluator.records import ProgramFault
from evaluator.tasks.task import Array

SOURCE = 'extern "C" __global__ void k(const float* x, float* y, int n) {}'
HEAD = f"import math\nimport cupy as cp\nk = cp.RawKernel(r'''{SOURCE}''', 'k')\n"


@pytest.fixture(scope="module")
def tracer():
    with Tracer() as tracer:
        yield tracer


@pytest.fixture
def plan_of(tracer):
    """Plan of a `forward` with this body, as JSON; it must pass the screen too."""

    def run(body, shapes=((6, 4),), output=((6, 4), "float32"), dtype="float32", head=HEAD):
        names = "abcdefgh"[: len(shapes)]
        text = f"{head}def forward({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
        screen(text)
        arrays = [Array(name, tuple(shape), dtype) for name, shape in zip(names, shapes, strict=True)]
        return json.loads(to_json(tracer.trace(text, arrays, [output])))

    return run


@pytest.fixture
def fault_of(plan_of):
    def run(body, **options):
        with pytest.raises(ProgramFault) as caught:
            plan_of(body, **options)
        return caught.value.fault

    return run
