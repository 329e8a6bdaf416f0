"""What a machine without Ray says."""

import importlib.util

import pytest

from evaluator.workers.pool import PoolError
from evaluator.workers.ray_pool import RayPool


def test_a_missing_ray_is_named_with_its_cure(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PoolError, match=r"Ray is not installed: pip install 'cudal1-jax\[ray\]'"):
        RayPool()


def test_an_actor_of_no_cpus_is_refused():
    with pytest.raises(ValueError, match="seen 0 CPUs"):
        RayPool(cpus=0)
