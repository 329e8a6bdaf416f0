"""Every kernel text of `cupy_nn` compiles under NVRTC for the GPUs in use; no GPU is needed."""

import inspect
import pathlib
import runpy

import numpy as np
import pytest

from evaluator.devices.cuda.compiler import Compiler
from evaluator.records import Limits, ProgramFault

CALLS = runpy.run_path(str(pathlib.Path(__file__).with_name("calls.py")))["CALLS"]
ARCHITECTURES = (90, pytest.param(80, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow))
LARGE = np.zeros((8, 4096), np.float32)


@pytest.fixture
def compiler():
    try:
        with Compiler(Limits()) as made:
            made.start()
            yield made
    except ProgramFault as error:
        pytest.skip(f"no NVRTC: {error}")


@pytest.fixture
def texts(cupy_nn, on_device, monkeypatch):
    """(source, kernel) of everything that all the functions launch, on small and on aligned arrays."""
    seen = {}
    launched = lambda kernel, *_: seen.setdefault((kernel._source, kernel._name))  # noqa: E731
    monkeypatch.setattr(cupy_nn.host.RawKernel, "__call__", launched)

    def device(value):
        return (
            tuple(map(device, value))
            if isinstance(value, tuple)
            else (on_device(value) if isinstance(value, np.ndarray) else value)
        )

    for name, arguments, keywords in CALLS:
        getattr(cupy_nn, name)(*device(arguments), **keywords)
    for function in vars(cupy_nn).values():
        if not inspect.isfunction(function) or function is cupy_nn.clamp:
            continue
        required = [x for x in inspect.signature(function).parameters.values() if x.default is x.empty]
        if [x.name for x in required] in (["x"], ["x", "dim"]):
            function(on_device(LARGE), *([1] if len(required) == 2 else []))
    wide = cupy_nn.fused._text  # arrays of 2^31 elements, which no test can hold
    seen |= dict.fromkeys((wide("a + b", ("float", "float"), 2, inner, True), "fused") for inner in ((), (1, 0)))
    return list(seen)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_text_compiles(texts, compiler, architecture):
    assert len(texts) > 100
    for source, name in texts:
        made = compiler.compile(source, f"{name}.cu", [f"-arch=sm_{architecture}", "-std=c++17"], [])
        assert name.encode() in made.cubin
