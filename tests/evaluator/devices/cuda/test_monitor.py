"""What a reading says, on an NVML that the test plays."""

import pytest

from evaluator.devices.cuda.monitor import Monitor, monitor


class Nvml:
    """Answers through the pointers that it is given; `missing` names functions of a newer or older driver."""

    def __init__(self, reasons=0, processes=1, status=0, missing=()):
        self._reasons, self._processes, self._status, self._missing = reasons, processes, status, missing

    def __getattribute__(self, name):
        if name.startswith("nvml") and name in self._missing:
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus_id, handle):
        return 0 if bus_id == b"0000:19:00.0" else 2

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle, answer):
        answer._obj.value = self._reasons
        return self._status

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, count, infos):
        count._obj.value = self._processes
        return 7 if self._processes else self._status

    def nvmlDeviceGetClockInfo(self, handle, which, answer):
        answer._obj.value = 1980
        return self._status

    def nvmlDeviceGetTemperature(self, handle, which, answer):
        answer._obj.value = 41
        return self._status

    def nvmlDeviceGetPowerUsage(self, handle, answer):
        answer._obj.value = 120_500
        return self._status


def reading(**told):
    return Monitor("0000:19:00.0", Nvml(**told)).read()


def test_a_device_at_rest_disturbs_nothing():
    found = reading()
    assert (found.sm_mhz, found.temperature_c, found.power_w, found.processes) == (1980, 41, 120.5, 1)
    assert found.disturbances(expected_processes=1) == []


def test_clocks_held_back_are_named_with_the_reason():
    lines = reading(reasons=0x01 | 0x04 | 0x40).disturbances(expected_processes=1)  # 0x01: idle, no reason
    assert [line.rpartition(": ")[2] for line in lines] == ["power cap", "thermal slowdown by hardware"]


def test_processes_that_nobody_expected_are_counted():
    assert "2 more processes" in reading(processes=3).disturbances(expected_processes=1)[0]
    assert reading(processes=2).disturbances(expected_processes=2) == []


@pytest.mark.parametrize("told", [{"status": 3}, {"missing": ("nvmlDeviceGetCurrentClocksThrottleReasons",)}])
def test_what_the_driver_does_not_say_is_no_disturbance(told):
    found = reading(processes=0, **told)
    assert found.held_back == ()
    assert found.disturbances(expected_processes=1) == []


def test_a_device_that_nvml_does_not_know_is_an_error():
    with pytest.raises(OSError, match="nvmlDeviceGetHandleByPciBusId_v2 failed with NVML status 2"):
        Monitor("0000:ff:00.0", Nvml())


def test_a_machine_without_nvml_has_no_monitor(monkeypatch):
    monkeypatch.setattr("evaluator.devices.cuda.monitor._LIBRARY", "libno-such-library.so.1")
    assert monitor("0000:19:00.0") is None
