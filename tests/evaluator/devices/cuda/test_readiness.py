"""What a machine lacks for the `cuda` device is one line with the cure, found before any work."""

import dataclasses

import pytest

from evaluator.devices.cuda import machine, readiness
from evaluator.devices.cuda.machine import Driver, Gpu, Machine, Nvrtc, Package
from evaluator.tasks import catalog

H200 = Gpu("NVIDIA H200", 90, 139 << 30)
WHOLE = Machine(
    driver=Driver((13, 0), (H200,)),
    nvrtc=Nvrtc("/opt/libnvrtc.so.13", (13, 0), (75, 80, 86, 89, 90, 100)),
    cupy=Package("14.2.0", 13),
    cudnn=Package("9.19.0", 13),
)


def changed(**parts):
    return dataclasses.replace(WHOLE, **parts)


def test_a_machine_with_everything_lacks_nothing():
    assert [finding.cure for finding in readiness.findings(WHOLE)] == [None] * 5
    assert readiness.missing(WHOLE, catalog.TASKS.values(), "kb") is None


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (changed(driver=None), ("libcuda.so.1 not found", "--device=cpu")),
        (changed(driver=Driver((13, 0), (), 100)), ("status 100", "nvidia-smi")),
        (changed(driver=Driver((13, 0), ())), ("GPU: none", "nvidia-smi")),
        (changed(driver=Driver((11, 8), (H200,))), ("CUDA 11.8 is too old", "12.0 or newer")),
        (changed(driver=Driver((12, 4), (H200,))), ("NVRTC: 13.0", "CUDA 12.4", "cudal1-jax[cuda12]")),
        (changed(driver=Driver((13, 0), (Gpu("Tesla V100", 70, 16 << 30),))), ("sm_70", "older than NVRTC", "cuda12")),
        (changed(driver=Driver((13, 0), (Gpu("Next", 130, 16 << 30),))), ("sm_130", "install a newer NVRTC")),
        (changed(nvrtc=None), ("libnvrtc not found", "cudal1-jax[cuda13]")),
        (changed(cupy=None), ("CuPy: not installed", "cudal1-jax[cuda13]")),
        (
            changed(driver=Driver((12, 4), (H200,)), nvrtc=Nvrtc("/opt/libnvrtc.so.12", (12, 9), (70, 90))),
            ("CuPy: 14.2.0 for CUDA 13", "driver is of CUDA 12.4", "cudal1-jax[cuda12]"),
        ),
    ],
)
def test_what_is_missing_is_named_with_its_cure(seen, says):
    message = readiness.missing(seen)
    assert message is not None
    for words in ("device cuda: ", *says):
        assert words in message


def test_cudnn_is_missed_by_tasks_that_convolve_only():
    without = changed(cudnn=None)
    assert readiness.missing(without, [catalog.get("1_001")], "kb") is None
    assert "convolutions need it" in readiness.missing(without, [catalog.get("1_063")], "kb")
    assert {finding.name: finding.cure for finding in readiness.findings(without)}["cuDNN"] is not None


def test_a_task_that_does_not_fit_is_refused_with_the_sizes_that_may():
    small = changed(driver=Driver((13, 0), (Gpu("NVIDIA L4", 89, 22 << 30),)))
    message = readiness.missing(small, [catalog.get("1_045")], "kb")
    assert "1_045 at size kb takes 64 GiB at least" in message
    assert "NVIDIA L4 has 22 GiB" in message
    assert "cpu, kb_v0" in message
    assert readiness.missing(small, [catalog.get("1_045")], "cpu") is None


def test_reading_a_machine_imports_and_raises_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(machine.toolkit, "find", machine.toolkit.find.__wrapped__)
    monkeypatch.setenv("CUDAL1_NVRTC", str(tmp_path / "libnvrtc.so"))
    seen = machine.read()
    assert seen.nvrtc is None
    assert len(readiness.findings(seen)) == 5


def test_packages_are_told_by_the_cuda_version_in_their_names(monkeypatch):
    def distribution(name, version):
        return type("D", (), {"metadata": {"Name": name}, "version": version})()

    installed = [distribution("numpy", "2.0"), distribution("cupy-cuda12x", "13.6.0")]
    monkeypatch.setattr(machine.importlib.metadata, "distributions", lambda: installed)
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: object())
    seen = machine.read()
    assert seen.cupy == Package("13.6.0", 12)
    assert seen.cudnn == Package("of unknown version")
