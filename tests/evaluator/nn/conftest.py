"""References in JAX, and `cupy_nn` on the host: its kernels run on the emulator, its other calls in NumPy."""

import functools
import importlib
import importlib.util
import pathlib
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluator.nn import jax_nn, run


@pytest.fixture(scope="session")
def in_jax():
    """Outputs of a reference in JAX, compiled whole as in the oracle: a quarter of the time of one operation by one."""

    @functools.cache
    def compiled(source):
        return jax.jit(lambda *arrays: run.run(source, jax_nn, arrays))

    def outputs(source, arrays):
        return [np.asarray(output) for output in compiled(source)(*map(jnp.asarray, arrays))]

    return outputs


@pytest.fixture(scope="session")
def cupy_nn(tmp_path_factory):
    """The namespace over a stand-in for CuPy: a copy of its own, of which nothing stays in `sys.modules`."""
    spec = importlib.util.spec_from_file_location("host_cupy", pathlib.Path(__file__).with_name("host_cupy.py"))
    host_cupy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host_cupy)
    namespace, modules = imported_over(*host_cupy.modules())
    namespace.host = host_cupy
    exact = modules["evaluator.nn.cupy_nn.exact.convolution"]
    modules["evaluator.nn.cupy_nn.cudnn_plans"].convolve = functools.partial(host_cupy.convolve, exact)
    cublas = modules["evaluator.nn.cupy_nn.cublas"]
    cublas._core, cublas._handle = host_cupy, lambda device, stream: host_cupy.Cublas()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield namespace


def imported_over(cupy: types.ModuleType, scipy_: types.ModuleType) -> tuple[types.ModuleType, dict]:
    """`evaluator.nn.cupy_nn`, imported while these stand for `cupy` and `cupyx.scipy`, and its modules by name."""
    import evaluator.nn

    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith(("cupy", "evaluator.nn.cupy_nn"))]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "cupy", cupy)
        patch.setitem(sys.modules, "cupyx", types.ModuleType("cupyx"))
        patch.setitem(sys.modules, "cupyx.scipy", scipy_)
        patch.setattr(evaluator.nn, "cupy_nn", None, raising=False)  # put back what it was after the import sets it
        namespace = importlib.import_module("evaluator.nn.cupy_nn")
        modules = {name: module for name, module in sys.modules.items() if name.startswith("evaluator.nn.cupy_nn")}
        for name in modules:
            del sys.modules[name]
    return namespace, modules


@pytest.fixture
def on_device(cupy_nn):
    """Turns a NumPy array into what a reference sees on the device."""

    def convert(array):
        return cupy_nn.operand(np.array(array, order="C").view(cupy_nn.host.ndarray))

    return convert
