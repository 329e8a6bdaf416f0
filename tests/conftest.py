"""Test settings: strict JAX promotion, eight simulated CPU devices, and markers that skip with a printed reason."""

import importlib.util
import os
import shutil

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest

collect_ignore = ["candidates"]  # programs to be judged, whatever their names end with

MISSING = {
    "torch": None if importlib.util.find_spec("torch") else "PyTorch is not installed (make install EXTRAS=torch)",
    "ray": None if importlib.util.find_spec("ray") else "Ray is not installed (make install EXTRAS=ray)",
    "tpu": None if importlib.util.find_spec("libtpu") else "libtpu is not installed (make install EXTRAS=tpu)",
    "gpu": None if shutil.which("nvidia-smi") else "no NVIDIA driver on this machine",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker, reason in MISSING.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
