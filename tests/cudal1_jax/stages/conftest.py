"""The toy stage for tests, with its update compiled once a session."""

import importlib.util
import sys
from pathlib import Path

import pytest


def _load(name):
    specification = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


toy_module = _load("toy")


@pytest.fixture(scope="session")
def toy():
    """The module `toy.py`; its stages compile their update once and sample with the same compiled program."""
    return toy_module


@pytest.fixture(scope="module")
def compile_quickly():
    """For modules of toys: their programs run in milliseconds, and compiling them takes half as long with this."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True, scope="session")
def compile_once():
    """Updates of equal configs share one compiled function; states are begun anew."""
    from cudal1_jax.stages import setup

    with pytest.MonkeyPatch.context() as patch:
        for name in ("learner", "reinforce"):
            patch.setattr(setup, name, _remembering(getattr(setup, name)))
        yield


_compiled = {}


def _remembering(build):
    def remembered(config, policy):
        import jax
        import jax.numpy as jnp

        learn = {
            name: value for name, value in config.learn.to_dict().items() if name not in ("method", "entropy_floor")
        }
        key = (build.__name__, repr(learn), config.rollout.temperature, policy.config)
        if key not in _compiled:
            function, state = build(config, policy)
            _compiled[key] = function, jax.device_get(state)
        function, state = _compiled[key]
        return function, jax.tree.map(jnp.asarray, state)

    remembered.__name__ = build.__name__
    return remembered
