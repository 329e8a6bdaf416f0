"""`cupy_nn` on the host: its kernels run on the emulator, its other calls in NumPy."""

import functools
import importlib
import importlib.util
import pathlib
import sys
import types

import numpy as np
import pytest


@pytest.fixture(scope="session")
def cupy_nn(tmp_path_factory):
    """The namespace, imported over a stand-in for CuPy. Nothing of it stays in `sys.modules`."""
    spec = importlib.util.spec_from_file_location("host_cupy", pathlib.Path(__file__).with_name("host_cupy.py"))
    host_cupy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host_cupy)
    cupy, scipy_ = host_cupy.module()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for name in [name for name in sys.modules if name.split(".")[0] in ("cupy", "cupyx")]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "cupy", cupy)
        patch.setitem(sys.modules, "cupyx", types.ModuleType("cupyx"))
        patch.setitem(sys.modules, "cupyx.scipy", scipy_)
        for name in [name for name in sys.modules if name.startswith("evaluator.nn.cupy_nn")]:
            patch.delitem(sys.modules, name)
        namespace = importlib.import_module("evaluator.nn.cupy_nn")
        namespace.host = host_cupy
        plans = sys.modules["evaluator.nn.cupy_nn.cudnn_plans"]
        exact = sys.modules["evaluator.nn.cupy_nn.exact.convolution"]
        patch.setattr(plans, "convolve", functools.partial(host_cupy.convolve, exact))
        yield namespace
        for name in [name for name in sys.modules if name.startswith("evaluator.nn.cupy_nn")]:
            del sys.modules[name]


@pytest.fixture
def on_device(cupy_nn):
    """Turns a NumPy array into what a reference sees on the device."""

    def convert(array):
        return cupy_nn.operand(np.array(array, order="C").view(cupy_nn.host.ndarray))

    return convert
