"""The emulator's process with one layer alone: what native code of a program tries, and which layer refused."""

import errno

import numpy as np
import pytest

from evaluator.devices import compilation, cpu, elf
from evaluator.devices.lowering import Lowered
from evaluator.records import LAYERS, Limits, Outcome, ProgramFault

DECLARATIONS = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
"""


@pytest.fixture
def errors_of(monkeypatch, plan_of, out):
    """errors_of(layers, calls): the error number of each call in a kernel whose text nobody checked; 0 succeeded."""
    monkeypatch.setattr(compilation, "lower", lambda text: Lowered(text, (DECLARATIONS,), ()))
    monkeypatch.setattr(compilation, "_checked", elf.read)

    def run(layers, *calls):
        lines = " ".join(f"errno = 0; y[{i}] = ({call}) == -1 ? errno : 0;" for i, call in enumerate(calls))
        plan, _ = plan_of(f"__global__ void k(int* y) {{ {lines} }}", [out((len(calls),), "int32")], block=(1,))
        limits = Limits(confinement=layers)
        with cpu.Session(cpu.compile(plan, Limits()), limits) as session:
            return session.run([]).outputs[0].tolist()

    return run


READ, WRITE = 'open("/etc/passwd", O_RDONLY)', 'open("/proc/self/oom_score_adj", O_WRONLY)'
PARENT = "kill(getppid(), 0)"
MAP = "(long)mmap(0, 64l << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)"
CODE = "(long)mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)"


def test_without_a_layer_everything_works_so_that_the_tests_below_show_something(errors_of):
    with pytest.warns(RuntimeWarning, match="the emulator runs without rlimits, landlock, seccomp"):
        assert errors_of((), READ, WRITE, PARENT, CODE) == [0, 0, 0, 0]


def test_seccomp_alone(errors_of):
    with pytest.warns(RuntimeWarning, match="the emulator runs without rlimits, landlock:"):
        found = errors_of(("seccomp",), READ, WRITE, PARENT, CODE, "socket(AF_UNIX, SOCK_STREAM, 0)", "fork()")
    assert found == [errno.EPERM] * 6


def test_landlock_alone(errors_of):
    with pytest.warns(RuntimeWarning, match="the emulator runs without rlimits, seccomp:"):
        found = errors_of(("landlock",), READ, WRITE, 'unlink("/etc/hostname")', 'execl("/bin/true", "x", (char*)0)')
    assert found == [errno.EACCES] * 4


def test_rlimits_alone(errors_of):
    with pytest.warns(RuntimeWarning, match="the emulator runs without landlock, seccomp:"):
        found = errors_of(("rlimits",), MAP, READ)
    assert found == [errno.ENOMEM, 0]


def test_all_layers_give_no_warning(plan_of, out):
    plan, _ = plan_of("__global__ void k(int* y) { y[0] = 1; }", [out((1,), "int32")], block=(1,))
    with cpu.Session(cpu.compile(plan, Limits()), Limits(confinement=LAYERS)) as session:
        assert np.array_equal(session.run([]).outputs[0], [1])


def test_an_unknown_layer_is_named(plan_of, out):
    plan, _ = plan_of("__global__ void k(int* y) { y[0] = 1; }", [out((1,), "int32")], block=(1,))
    compiled = cpu.compile(plan, Limits())
    with pytest.raises(ValueError, match="seen the layers 'walls'; expected some of rlimits, landlock, seccomp"):
        cpu.Session(compiled, Limits(confinement=("walls",)))


def test_memory_beyond_the_limit_is_a_fault_of_the_program(fault_of, out):
    source = """__global__ void k(int* y) {
      for (int i = 0; i < 100000; ++i) { int* p = new int[1 << 20]; for (int j = 0; j < 1 << 20; j += 512) p[j] = i; }
      y[0] = 1; }"""
    outcome, _ = fault_of(source, [out((1,), "int32")], block=(1,))
    assert outcome in (Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_BOUNDS)  # a null pointer from `new`, used


def test_an_endless_kernel_is_ended_by_its_deadline(plan_of, out):
    source = "__global__ void k(volatile int* y) { while (y[0] != 7) y[1] = 3; }"
    plan, _ = plan_of(source, [out((2,), "int32")], block=(1,))
    limits = Limits(kernel_s=0.2)
    with pytest.raises(ProgramFault) as caught, cpu.Session(cpu.compile(plan, limits), limits) as session:
        session.run([])
    assert caught.value.fault.outcome is Outcome.TIMEOUT
