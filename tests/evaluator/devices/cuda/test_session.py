"""What a session does around a program, on a device that the host plays: a program is a function on arrays."""

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

from evaluator import _core
from evaluator.program.plan import Buffer, Convolution, Plan, View
from evaluator.records import Limits, Outcome, ProgramFault, Rung

HOST_CUPY = Path(__file__).parents[2] / "nn" / "host_cupy.py"
OURS = ("cupy", "evaluator.nn.cupy_nn", "evaluator.devices.cuda.session", "evaluator.devices.cuda.buffers")
OURS += tuple(f"evaluator.devices.cuda.{name}" for name in ("comparison", "execution", "layout", "timed_plan"))
SIZE = 64
SLACK = 32  # bytes of a buffer's pages beside it


def alike(some, others):
    return all(np.allclose(one, other, rtol=1e-6) for one, other in zip(some, others, strict=True))


def at(address, shape, dtype, owner):
    size = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    memory.owner = owner  # kept alive by the array
    return np.frombuffer(memory, dtype, size).reshape(shape)


ALIVE = weakref.WeakSet()  # guarded memory


class Memory:
    """Stands for guarded memory."""

    def __init__(self, device, nbytes, right):
        ALIVE.add(self)
        self._bytes = np.zeros(nbytes + SLACK, np.uint8)
        start = self._bytes.__array_interface__["data"][0]
        self.address = start + SLACK if right else start
        slack = (start, SLACK) if right else (start + nbytes, SLACK)
        self.before, self.behind = (slack, (start, 0)) if right else ((start, 0), slack)


class Device:
    """Everything happens at once; `broken` is what a kernel did to the context."""

    broken = None

    def wait(self, deadline_s):
        if self.broken:
            raise self.broken

    def fill(self, address, pattern, count):
        ctypes.memmove(address, pattern * count, len(pattern) * count)

    def copy(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)


class Timer:
    _pieces = 0

    def start(self): ...
    def stop(self):
        self._pieces += 1

    def collect(self, deadline_s):
        pieces, self._pieces = self._pieces, 0
        return [5.0] * pieces


def seal(bits, seed, word):
    bits[seed % bits.size] = word[0]


def count_sealed(bits, seed, word, left):
    left[0] += bits[seed % bits.size] == word[0]


def count_changed(bits, byte, changed):
    changed[0] += (bits != byte).sum()


@pytest.fixture(scope="module")
def session_module():
    """`evaluator.devices.cuda.session`, imported over a stand-in for CuPy, of which nothing stays in `sys.modules`."""
    spec = importlib.util.spec_from_file_location("host_cupy", HOST_CUPY)
    host_cupy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host_cupy)
    cupy, special = host_cupy.modules()
    cupy.empty = lambda shape, dtype=np.float32: np.empty(shape, dtype).view(host_cupy.ndarray)
    cupy.asnumpy = np.asarray
    cupy.RawModule = object
    cupy.cuda.memory = types.SimpleNamespace(OutOfMemoryError=MemoryError)
    stand_ins = {"cupy": cupy, "cupyx": types.ModuleType("cupyx"), "cupyx.scipy": special}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith(OURS)]:
            patch.delitem(sys.modules, name)
        for name, module in stand_ins.items():
            patch.setitem(sys.modules, name, module)
        module = importlib.import_module("evaluator.devices.cuda.session")
        for name in [name for name in sys.modules if name.startswith(OURS[1:])]:
            del sys.modules[name]
    return module


@pytest.fixture
def session_of(session_module, monkeypatch):
    """Makes a session of a program: a function of (x, out), both float32, out to be twice x."""
    x, out = Buffer("x", "input", "float32", (SIZE,)), Buffer("t0", "temporary", "float32", (SIZE,))
    plan = Plan((x, out), (), (), (View(1, 0, (SIZE,)),))
    device = Device()
    opened = contextlib.ExitStack()

    def start(program):
        class Executable:
            def __init__(self, device, compiled): ...
            def globals(self):
                return []

            def queue(self, addresses, timer=None):
                if timer is not None:
                    timer.start()
                    timer.stop()
                program(*(at(address, (SIZE,), np.dtype(np.float32), None) for address in addresses))

        buffers = vars(session_module)["GuardedBuffers"].__init__.__globals__
        array = buffers["cp"].ndarray
        monkeypatch.setattr(buffers["layout"], "array", lambda *given: at(*given).view(array))
        monkeypatch.setitem(buffers, "_guarded", lambda device, nbytes, right, make_room: Memory(device, nbytes, right))
        monkeypatch.setattr(buffers["comparison"], "count_equal", lambda bits, word: int((bits == word[0]).sum()))
        monkeypatch.setattr(buffers["comparison"], "seal", seal)
        monkeypatch.setattr(buffers["comparison"], "count_sealed", count_sealed)
        monkeypatch.setattr(buffers["comparison"], "count_changed", count_changed)
        recorded = lambda device, call: (types.SimpleNamespace(launch=call), None)  # noqa: E731
        monkeypatch.setitem(vars(session_module)["TimedPlan"].__init__.__globals__, "record", recorded)
        differs = lambda one, other: one.tobytes() != other.tobytes()  # noqa: E731
        monkeypatch.setattr(session_module, "differs", differs)
        monkeypatch.setattr(session_module, "Executable", Executable)
        compiled = types.SimpleNamespace(plan=plan)
        session = session_module.Session(
            device, Timer(), compiled, Limits(), lambda: None, lambda: start.beats.append(1)
        )
        return opened.enter_context(session)

    start.device, start.beats = device, []
    with opened:
        yield start


def inputs(seed=1):
    return [np.random.default_rng(seed).standard_normal(SIZE, dtype=np.float32)]


def test_an_honest_program_runs_is_timed_and_leaves_its_outputs(session_of):
    given = inputs()
    session = session_of(lambda x, out: np.multiply(x, 2, out=out))
    report = session.run(given, seed=3)
    assert (report.unwritten, report.modified, report.state_changed) == ((0,), (), False)
    np.testing.assert_array_equal(report.outputs[0], 2 * given[0])
    assert session.time(4) == 5.0
    np.testing.assert_array_equal(session.outputs(alike)[0], 2 * given[0])
    assert len(session_of.beats) >= 1 + 4 + 1  # a run, the timed replays, and what follows them


def test_the_memory_of_a_judged_run_is_given_back_at_once(session_of):
    """Not by the garbage collector: it may be most of the device's."""
    session = session_of(lambda x, out: np.multiply(x, 2, out=out))
    ALIVE.clear()  # of other tests
    gc.disable()
    try:
        report = session.run(inputs())
        assert len(ALIVE) == len(report.outputs)  # the input's is gone
        del report
        assert not list(ALIVE)
        session.time(2)
        session.outputs(alike)  # with an audit in fresh memory
        assert len(ALIVE) == 2  # those that are timed
    finally:
        gc.enable()


def test_steps_are_timed_one_by_one_on_the_inputs_as_given(session_of):
    seen = []
    session = session_of(lambda x, out: seen.append(x.copy()) or np.multiply(x, 2, out=out))
    given = inputs()
    session.run(given)
    session.time(2)  # which turns them
    assert session.step_us() == [5.0]
    np.testing.assert_array_equal(seen[-1], given[0])


def test_what_a_program_leaves_out_or_changes_is_reported(session_of):
    def half(x, out):
        out[: SIZE // 2] = 2 * x[: SIZE // 2]
        x[0] = 7.0

    report = session_of(half).run(inputs())
    assert (report.unwritten, report.modified) == ((SIZE // 2,), ("x",))


def test_a_program_that_is_coarse_only_where_outputs_are_poisoned_is_rechecked_where_they_are(session_of):
    """Poison is what tells a timed replay from one that is not: the replay that is compared has to have it as well."""
    runs = []

    def coarse_when_timed(x, out):
        runs.append(bool(np.isnan(out).all()))
        out[:] = 2 * x * np.float32(1.0003 if runs[-1] and len(runs) > 1 else 1.0)

    session = session_of(coarse_when_timed)
    given = inputs()
    session.run(given)
    session.time(3)
    seen = session.outputs(alike)[0]
    assert runs == [True] * len(runs)
    assert np.abs(seen - 2 * given[0]).max() > 1e-4  # as in the timed replays, so that its bound is what judges them


def test_a_replay_that_differs_from_fresh_memory_is_wrong(session_of):
    kept = []

    def remembers(x, out):
        kept.append(2 * x)
        out[:] = kept[-2] if len(kept) == 4 else kept[-1]  # the last timed replay gives what the one before it gave

    session = session_of(remembers)
    session.run(inputs())
    session.time(2)
    with pytest.raises(ProgramFault) as caught:
        session.outputs(alike)
    assert caught.value.fault.outcome is Outcome.WRONG_AFTER_TIMING


@pytest.mark.parametrize("marking", [2, 3], ids=["before the recording", "timed"])
def test_a_mark_in_an_input_does_not_tell_later_replays_that_they_are_timed(session_of, marking):
    runs, marked = [], []

    def idle_where_marked(x, out):
        runs.append(0)
        marked.append(not x.any())
        out[:] = 0 if marked[-1] else 2 * x
        if len(runs) == marking:
            x[:] = 0  # whose outputs are zeros, in fresh memory as well

    session = session_of(idle_where_marked)

    def time():
        session.time(1)
        return session.outputs(alike)

    session.run(inputs())
    with pytest.raises(ProgramFault) as caught:
        time()
    assert caught.value.fault.outcome is Outcome.MODIFIED_INPUT
    assert not any(marked)


def test_a_program_that_computes_now_and_then_is_seen_though_the_audited_replay_was_right(session_of):
    runs = []

    def lazy(x, out):
        runs.append(0)
        out[:] = 0 if len(runs) > 5 and len(runs) % 3 else 2 * x  # right in the judged runs, and in every third one

    session = session_of(lazy)
    session.run(inputs())
    session.time(1)
    with pytest.raises(ProgramFault) as caught:
        session.outputs(alike)
    assert (caught.value.fault.outcome, len(runs)) == (Outcome.WRONG_AFTER_TIMING, 7)


def test_timed_replays_have_contents_of_their_own(session_of):
    seen = []

    def doubles(x, out):
        seen.append(x.copy())
        np.multiply(x, 2, out=out)

    session = session_of(doubles)
    given = inputs()
    session.run(given)
    session.time(6)
    timed = seen[2:]
    assert all(sorted(x) == sorted(given[0]) for x in timed)
    assert len({x.tobytes() for x in timed}) > 3
    np.testing.assert_array_equal(session.outputs(alike)[0], 2 * given[0])


def test_a_timed_replay_that_writes_nothing_is_seen(session_of):
    runs = []

    def idle_when_replayed(x, out):
        runs.append(0)
        if len(runs) <= 2:  # the judged run, and the one before the recording
            out[:] = 2 * x

    session = session_of(idle_when_replayed)
    session.run(inputs())
    with pytest.raises(ProgramFault) as caught:
        session.time(1)
    assert caught.value.fault.outcome is Outcome.UNWRITTEN_OUTPUT


def test_what_lies_behind_a_buffer_is_other_in_each_judged_run(session_of):
    seen = []

    def looks(x, out):
        seen.append(at(out.__array_interface__["data"][0] + out.nbytes, (4,), np.dtype(np.uint8), None).copy())
        out[:] = 2 * x

    session = session_of(looks)
    for _ in range(3):
        session.run(inputs(), guard="left")
    assert len({each.tobytes() for each in seen}) == 3
    largest = [float(each.view(np.float32)[0]) for each in seen]
    assert np.isnan(largest).sum() == 1
    assert np.nanmax(largest) > 1e36
    assert np.nanmin(largest) < -1e36


@pytest.mark.parametrize("straying", [2, 3, 6], ids=["before the recording", "timed", "after timing"])
def test_a_replay_that_writes_beside_a_buffer_is_out_of_bounds(session_of, straying):
    """State there would outlive the poison, and tell a timed replay from the first."""
    runs = []

    def strays(x, out):
        runs.append(0)
        out[:] = 2 * x
        if len(runs) == straying:
            at(out.__array_interface__["data"][0] + out.nbytes, (4,), np.dtype(np.uint8), None)[:] = 1

    session = session_of(strays)

    def time():
        session.time(2)
        session.outputs(alike)

    session.run(inputs())
    with pytest.raises(ProgramFault) as caught:
        time()
    assert caught.value.fault.outcome is Outcome.OUT_OF_BOUNDS
    assert len(runs) <= straying + 1


def test_a_stray_write_that_a_later_replay_takes_back_is_out_of_bounds(session_of):
    """Nothing is to be seen any more when the times are collected, but that it was counted."""
    runs = []

    def strays(x, out):
        runs.append(0)
        out[:] = 2 * x
        if len(runs) in (3, 4):  # both of the timed replays
            at(out.__array_interface__["data"][0] + out.nbytes, (4,), np.dtype(np.uint8), None)[:] ^= 1

    session = session_of(strays)
    session.run(inputs())
    with pytest.raises(ProgramFault, match="a later one put back what was there") as caught:
        session.time(2)
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.OUT_OF_BOUNDS, Rung.TIMING)


def test_what_a_library_meets_after_a_stray_access_is_the_stray_access(session_of):
    def stray_then_library(x, out):
        session_of.device.broken = _core.CudaError("cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS", 700)
        raise RuntimeError("cublasGemmStridedBatchedEx failed with status 13")

    with pytest.raises(ProgramFault) as caught:
        session_of(stray_then_library).run(inputs())
    assert (caught.value.fault.outcome, caught.value.fault.rung) == (Outcome.OUT_OF_BOUNDS, Rung.MEMORY_SAFETY)


def test_a_library_that_fails_on_a_sound_device_is_our_error(session_of):
    def fails(x, out):
        raise RuntimeError("cublasCreate failed with status 1")

    with pytest.raises(RuntimeError, match="cublasCreate"):
        session_of(fails).run(inputs())


def test_a_convolution_that_cudnn_has_no_plan_for_is_unsupported(session_module, monkeypatch):
    execution = session_module.Executable.queue.__globals__
    cudnn = execution["cudnn_plans"]

    def convolve(geometry, x, weight, out):
        raise cudnn.NoPlan("cuDNN 9 has no plan")

    monkeypatch.setattr(cudnn, "convolve", convolve)
    monkeypatch.setattr(execution["layout"], "array", at)
    x, weight, out = (View(0, 0, (1, 1, n)) for n in (5, 2, 4))
    step = Convolution(x, weight, out, (1,), (0,), (1,), (0,), 1, False, line=17)
    executable = object.__new__(session_module.Executable)
    executable._plan = Plan((Buffer("x", "input", "float32", (5,)),), (), (step,), (out,))
    memory = np.zeros(5, np.float32)
    with pytest.raises(ProgramFault) as caught:
        executable._call_library(step, [memory.__array_interface__["data"][0]])
    assert (caught.value.fault.outcome, caught.value.fault.line) == (Outcome.UNSUPPORTED, 17)


def test_what_is_out_of_memory_is_tried_once_more_with_room(session_of):
    calls = []

    def hungry(x, out):
        calls.append(0)
        if len(calls) == 1:
            raise MemoryError("one byte too many")
        out[:] = 2 * x

    assert session_of(hungry).run(inputs()).unwritten == (0,)

    def starving(x, out):
        raise MemoryError("always")

    with pytest.raises(ProgramFault) as caught:
        session_of(starving).run(inputs())
    assert caught.value.fault.outcome is Outcome.OUT_OF_MEMORY


def test_all_that_kernels_can_write_is_watched_but_literals_that_the_driver_does_not_know(session_module, monkeypatch):
    class Module:
        def __init__(self, known):
            self._known = known

        def global_variable(self, name):
            if name not in self._known:
                raise _core.CudaError("cuModuleGetGlobal: CUDA_ERROR_NOT_FOUND", 500)
            return self._known[name]

    executable = object.__new__(session_module.Executable)
    layout = session_module.Executable.__init__.__globals__["layout"]
    monkeypatch.setattr(layout, "bits", lambda address, nbytes, dtype, owner: (address, nbytes))
    executable._compiled = types.SimpleNamespace(modules=[types.SimpleNamespace(globals=("kept", "$str", "$str$1"))])
    executable._modules = [Module({"kept": (64, 4), "$str$1": (128, 9)})]
    assert executable.globals() == [(64, 4), (128, 9)]
    executable._modules = [Module({"$str$1": (128, 9)})]
    with pytest.raises(_core.CudaError):
        executable.globals()


def test_a_library_step_without_a_result_calls_no_library(session_module):
    executable = object.__new__(session_module.Executable)
    calls = []
    executable._array = lambda *given: calls.append(given)
    executable._call_library(types.SimpleNamespace(out=View(0, 0, (3, 0))), [64])
    assert calls == []


def test_outputs_that_differ_as_sums_in_another_order_do_are_alike(session_of):
    runs = []

    def atomic(x, out):
        runs.append(0)
        out[:] = 2 * x * (1 + 1e-6 * (len(runs) % 2))

    session = session_of(atomic)
    given = inputs()
    session.run(given)
    session.time(1)
    np.testing.assert_allclose(session.outputs(alike)[0], 2 * given[0], rtol=1e-5)
