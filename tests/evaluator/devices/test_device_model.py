"""The model of the device that a verdict is tied to."""

from evaluator.devices import device_model
from evaluator.devices.cuda import machine
from evaluator.devices.cuda.machine import Driver, Gpu


def test_linux_names_the_processor():
    assert device_model.cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9B14\nflags\t: fpu\n") == "AMD EPYC 9B14"


def test_a_processor_without_a_name_is_at_least_its_architecture():
    assert device_model.cpu_model("processor : 0\nmodel name : unknown\n") != ""


def test_a_gpu_is_named_by_its_driver(monkeypatch):
    gpus = (Gpu("NVIDIA H200", 90, 141 << 30), Gpu("NVIDIA L4", 89, 24 << 30))
    monkeypatch.setattr(machine, "driver", lambda: Driver((13, 0), gpus))
    assert device_model.name.__wrapped__("cuda") == "NVIDIA H200"


def test_without_a_gpu_there_is_no_name(monkeypatch):
    monkeypatch.setattr(machine, "driver", lambda: None)
    assert device_model.name.__wrapped__("cuda") == ""
