"""Headers go with their NVRTC: those of its own wheels, then of an installed toolkit of the same release."""

import pytest

from evaluator.devices.cuda import toolkit


def make(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Wheels of both CUDA majors in one environment, and a toolkit 13.0."""
    site = tmp_path / "site/nvidia"
    for name in ("cu13/include", "cuda_runtime/include"):
        make(site / name / "cuda_fp16.h")
    make(site / "cuda_nvcc/include/crt/mma.h")
    make(tmp_path / "cuda/include/cuda.h", "#define CUDA_VERSION 13000\n")
    make(tmp_path / "cuda/include/cuda_fp16.h")
    monkeypatch.setattr(toolkit, "_toolkits", lambda: iter([tmp_path / "cuda"]))
    libraries = {13: make(site / "cu13/lib/libnvrtc.so.13"), 12: make(site / "cuda_nvrtc/lib/libnvrtc.so.12")}
    return tmp_path, libraries


def headers(machine, major, release, monkeypatch):
    root, libraries = machine
    monkeypatch.setattr(toolkit, "_release_of", lambda library: release)
    return [path.removeprefix(f"{root}/") for path in toolkit._of(libraries[major]).headers]


def test_wheels_of_two_majors_are_not_mixed(machine, monkeypatch):
    assert headers(machine, 13, (13, 5), monkeypatch) == ["site/nvidia/cu13/include"]
    assert headers(machine, 12, (12, 9), monkeypatch) == [
        "site/nvidia/cuda_runtime/include",
        "site/nvidia/cuda_nvcc/include",
    ]


def test_what_wheels_lack_comes_from_a_toolkit_of_the_same_release(machine, monkeypatch):
    assert headers(machine, 13, (13, 0), monkeypatch) == ["site/nvidia/cu13/include", "cuda/include"]


def test_a_library_that_cannot_be_loaded_has_its_own_headers_alone(machine):
    root, libraries = machine
    assert toolkit._release_of(libraries[13]) is None
    assert toolkit._release_in(root / "site/nvidia/cu13/include") is None
