"""Test settings: strict JAX promotion, eight simulated CPU devices, markers that skip with a reason or rotate."""

import datetime
import importlib.util
import os
import shutil
import zlib

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


def of_today(name: str, today: datetime.date, days: int = 10) -> bool:
    """Whether a test runs today: each name on one day in ten, all names within ten days in a row."""
    return zlib.crc32(name.encode()) % days == today.toordinal() % days


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    today = datetime.date.today()
    for item in items:
        if item.get_closest_marker("rotating") and not of_today(item.name, today):
            item.add_marker(pytest.mark.slow)
        for marker, reason in MISSING.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
