"""Native code of a program is confined: what it tries is refused, and what it breaks is its own process."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from evaluator.devices import compilation, cpu, elf, translation_unit
from evaluator.devices.lowering import Lowered
from evaluator.records import Limits, Outcome, ProgramFault

DECLARATIONS = r"""
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <stdio.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static void* nothing(void*) { return nullptr; }
extern "C" void* __libc_malloc(size_t);
"""


@pytest.fixture
def unchecked(monkeypatch):
    """Switches off every check of the text and of the object, so that the process's own confinement stands alone."""
    monkeypatch.setattr(compilation, "lower", lambda text: Lowered(text, (DECLARATIONS,), ()))
    monkeypatch.setattr(compilation, "_checked", elf.read)


def attempt(expression: str) -> str:
    return f"__global__ void k(int* y) {{ errno = 0; y[0] = (int)({expression}); y[1] = errno; }}"


SYSTEM_CALLS = [
    'open("/etc/passwd", O_RDONLY)',
    'open("FORBIDDEN", O_WRONLY | O_CREAT, 0600)',
    "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)",
    'execl("/bin/true", "true", (char*)0)',
    "kill(getppid(), 0)",
    "kill(getpid(), 0)",
    "socket(AF_INET, SOCK_STREAM, 0)",
    "socket(AF_UNIX, SOCK_STREAM, 0)",
    "ptrace(PTRACE_ATTACH, getppid(), 0, 0)",
    "process_vm_readv(getppid(), 0, 0, 0, 0, 0)",
    'write(2, "x", 1)',
    'unlink("KEPT")',
    'syscall(SYS_mkdirat, AT_FDCWD, "FORBIDDEN", 0700)',
    "prctl(PR_SET_DUMPABLE, 1)",
    "syscall(SYS_perf_event_open, 0, 0, 0, 0, 0)",
    'syscall(SYS_memfd_create, "x", 0)',
    "mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0",
    "mprotect((void*)((long)y & ~4095l), 4096, PROT_READ | PROT_EXEC)",
    "mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0",
    "mprotect((void*)((long)y & ~4095l), 4096, PROT_READ)",
    "munmap((void*)((long)y & ~4095l), 4096)",
    "syscall(SYS_brk, 0)",
    "syscall(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, 0, 0, 0, 0)",
    "sigaction(SIGSEGV, &action, 0)",
]


def test_system_calls_are_refused(unchecked, outputs_of, out, tmp_path):
    kept, forbidden = tmp_path / "kept", tmp_path / "forbidden"
    kept.write_text("")
    lines = "\n".join(f"errno = 0; *y++ = (int)({call}); *y++ = errno;" for call in SYSTEM_CALLS)
    source = f"__global__ void k(int* y) {{ struct sigaction action = {{}}; {lines} }}"
    source = source.replace("FORBIDDEN", str(forbidden)).replace("KEPT", str(kept))
    (y,) = outputs_of(source, [out((len(SYSTEM_CALLS), 2), "int32")], block=(1,))
    for call, (result, error) in zip(SYSTEM_CALLS, y, strict=True):
        assert result < 0, call
        assert error != 0, call
    assert kept.exists()
    assert not forbidden.exists()


def test_shell_command_does_not_run(unchecked, run_kernel, out, tmp_path):
    target = tmp_path / "made"
    source = attempt(f'system("touch {target}")')
    with pytest.raises(ProgramFault):  # the C library has to remember that it starts one
        run_kernel(source, [out((2,), "int32")], block=(1,))
    assert not target.exists()


@pytest.mark.parametrize(
    "call",
    [
        "*(char*)malloc(1 << 20) = 1",
        "*(char*)malloc(1) = 1",
        "pthread_create(&thread, 0, nothing, 0)",
        "environ = (char**)y",
        "*(volatile char*)&environ = 1",
        "((volatile char*)(void*)stdout)[200] = 1",
    ],
)
def test_memory_of_the_libraries_is_read_only(unchecked, fault_of, out, call):
    source = f"__global__ void k(int* y) {{ pthread_t thread; {call}; y[0] = 1; }}"
    outcome, message = fault_of(source.replace("malloc(", "__libc_malloc("), [out((1,), "int32")], block=(1,))
    assert outcome is Outcome.OUT_OF_BOUNDS
    assert "pointer" in message


KEPT = {
    "heap that was never allocated": "(volatile int*)((char*)emulator_malloc(0) + (1 << 20))",
    "heap that was allocated once": "(volatile int*)emulator_malloc(64)",
    "stack of a thread that never ran": "(volatile int*)((char*)&mine + 5 * (256 + 16) * 1024)",
    "stack below": "(volatile int*)((char*)&mine - 100000)",
    "above the top of a stack": "(volatile int*)(((size_t)&mine | 4095) - 63)",
    "variables of the runner": "(volatile int*)((char*)&emulator_context + 16 + sizeof emulator_context)",
    "end of the page of its variables": "(volatile int*)(((size_t)&variable | 4095) - 63)",
    "tables of the runner": "(volatile int*)((char*)(emulator_context.exited + 1000))",
    "dynamic shared memory before its own": "(volatile int*)((char*)emulator_context.dynamic_shared - 4096)",
    "floating-point modes": None,
}


@pytest.mark.parametrize("place", KEPT.values(), ids=KEPT.keys())
def test_nothing_that_a_program_can_write_to_outlives_a_timed_replay(unchecked, monkeypatch, plan_of, out, place):
    monkeypatch.setattr(translation_unit, "POISONED", ("asm",))
    get, put = "*at", "*at = 77"
    if place is None:
        get, put = "(fegetround() == FE_UPWARD ? 77 : 0)", "fesetround(FE_UPWARD)"
    # The second thread runs on the second stack, above which there are bytes of nobody.
    source = f"""static int variable; __global__ void k(float* y) {{
      int mine = 0; variable = 0; volatile int* at = {place or "&mine"};
      if (threadIdx.x == 1) {{
        y[0] = (float)(77 == {get}); {put}; y[1] = (float)(77 == {get});
      }}
      __syncthreads();
    }}"""
    plan, _ = plan_of(source, [out((2,))], block=(2,), shared=64)
    with cpu.Session(cpu.compile(plan, Limits()), Limits()) as session:
        session.run([])
        for _ in range(3):
            session.time(1)
            assert session._current_outputs()[0].tolist() == [0, 1]


INITIALISERS = [
    'static int r = system("touch TARGET"); __global__ void k(int* y) { y[0] = r; }',
    '__attribute__((constructor)) static void f() { system("touch TARGET"); } __global__ void k(int* y) { y[0] = 0; }',
    'static int r = open("TARGET", O_WRONLY | O_CREAT, 0600); __global__ void k(int* y) { y[0] = r; }',
]


@pytest.mark.parametrize("source", INITIALISERS)
def test_native_initialisers_run_confined(unchecked, run_kernel, out, tmp_path, source):
    target = tmp_path / "made"
    run_kernel(source.replace("TARGET", str(target)), [out((1,), "int32")], block=(1,))
    assert not target.exists()


def test_native_initialisers_cannot_read_files(unchecked, outputs_of, out):
    source = 'static int r = open("/etc/passwd", O_RDONLY); __global__ void k(int* y) { y[0] = r; }'
    assert outputs_of(source, [out((1,), "int32")], block=(1,))[0][0] == -1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('__global__ void k(int* y) { y[0] = system("true"); }', "cannot call system"),
        ('extern "C" int fork(void); __global__ void k(int* y) { y[0] = fork(); }', "cannot call"),
        (
            "__device__ int f(int v) { return v + 1; } __device__ int g = f(3);\n"
            "__device__ int h(int* y) { return *y; }"
            "__device__ int state = h((int*)64); __global__ void k(int* y) { y[0] = state + g; }",
            "needs code to initialise",
        ),
        (
            "__attribute__((constructor)) static void begin() { __trap(); } __global__ void k(int* y) { y[0] = 0; }",
            "needs code to initialise",
        ),
    ],
)
def test_host_code_is_a_compile_error(fault_of, out, source, words):
    outcome, message = fault_of(source, [out((1,), "int32")], block=(1,))
    assert outcome is Outcome.COMPILE_ERROR
    assert words in message


@pytest.mark.parametrize("how", ["_exit(0)", "exit(0)", "abort()", "((void (*)())0x10)()", "__builtin_trap()"])
def test_program_that_ends_its_process_costs_that_process_only(unchecked, fault_of, out, how):
    outcome, _ = fault_of(f"__global__ void k(int* y) {{ {how}; y[0] = 1; }}", [out((1,), "int32")], block=(1,))
    assert outcome in (Outcome.CRASHED, Outcome.OUT_OF_BOUNDS)


REPORT = "struct { unsigned magic, kind; int rest[48]; } r = {0x31554d45, KIND, {}}; "
SEND = "for (int fd = 3; fd < 64; ++fd) write(fd, &r, sizeof r); "


def test_forged_report_of_success_leaves_the_output_unwritten(unchecked, run_kernel, out):
    source = "__global__ void k(float* y) { " + REPORT.replace("KIND", "2") + SEND + "for (;;) pause(); }"
    report = run_kernel(source, [out((1,))], block=(1,))
    assert report.unwritten == (1,)


def test_nonsense_on_the_control_channel_is_a_crash(unchecked, fault_of, out):
    source = "__global__ void k(int* y) { " + REPORT.replace("KIND", "77") + SEND + "y[0] = 1; }"
    outcome, message = fault_of(source, [out((1,), "int32")], block=(1,))
    assert outcome is Outcome.CRASHED
    assert "reports" in message


def test_program_that_writes_over_its_runner_cannot_choose_the_verdict(unchecked, run_kernel, out):
    # The runner's own stack and heap are set to zero bytes, as far as the program gets.
    source = r"""__global__ void k(int* y) {
      y[0] = 1;
      for (int i = 0; i < 100000; i++) ((volatile char*)malloc(8))[i] = 0;
      char here; for (int i = 0; i < 16384; i++) ((volatile char*)&here)[i] = 0; }"""
    endings = []
    try:
        endings.append(run_kernel(source, [out((2,), "int32")], block=(1,)).unwritten)
    except ProgramFault as fault:
        endings.append(fault.fault.outcome)
    assert endings[0] in ((1,), Outcome.CRASHED, Outcome.OUT_OF_BOUNDS, Outcome.TIMEOUT)


def test_replay_that_computes_nothing_is_seen(unchecked, plan_of, out):
    # The second pass returns at once: what earlier passes left must not be taken for its result.
    source = "static int calls; __global__ void k(float* y, float v) { if (calls++ < 1) y[threadIdx.x] = v; }"
    plan, _ = plan_of(source, [out((256,)), np.float32(3)])
    with cpu.Session(cpu.compile(plan, Limits()), Limits()) as session:
        session.run([])
        with pytest.raises(ProgramFault) as caught:
            session.time(3)
    assert caught.value.fault.outcome is Outcome.UNWRITTEN_OUTPUT


def timed_outcome(plan, inputs, replays=6, limits=None):
    limits = limits or Limits()
    with cpu.Session(cpu.compile(plan, limits), limits) as session:
        session.run(inputs)
        for _ in range(replays):
            session.time(1)
        return session.outputs()


@pytest.mark.filterwarnings("ignore:the .* runs without seccomp:RuntimeWarning")
def test_results_kept_from_earlier_launches_do_not_pass_for_timed_ones(unchecked, plan_of, out):
    # State where no comparison of globals looks: a page at a fixed address, filled while the program is judged.
    source = """struct Kept { int calls; float y[256]; };
    __global__ void k(const float* x, float* y, int n) {
      Kept* kept = (Kept*)0x7000000000;
      mmap(kept, sizeof *kept, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      bool again = kept->calls++ > 0;
      for (int i = 0; i < n; ++i) y[i] = again ? kept->y[i] : (kept->y[i] = 2 * x[i]);
    }"""
    plan, inputs = plan_of(source, [np.arange(256, dtype=np.float32), out((256,)), 256], block=(1,))
    with pytest.raises(ProgramFault) as caught:
        timed_outcome(plan, inputs, limits=Limits(confinement=("rlimits", "landlock")))  # else it could map nothing
    assert caught.value.fault.outcome is Outcome.WRONG_AFTER_TIMING


def test_honest_program_gives_its_outputs_for_the_inputs_as_given(plan_of, out):
    source = "__global__ void k(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }"
    x = np.arange(256, dtype=np.float32)
    plan, inputs = plan_of(source, [x, out((256,))])
    assert np.array_equal(timed_outcome(plan, inputs)[0], 2 * x)


def test_runner_reports_what_confines_it(plan_of, out):
    plan, _ = plan_of("__global__ void k(int* y) { y[0] = 1; }", [out((1,), "int32")])
    with cpu.Session(cpu.compile(plan, Limits()), Limits()) as session:
        from evaluator import _core

        assert session.confinement == {"landlock": _core.landlock_abi(), "seccomp": True}
        assert os.path.exists(f"/proc/{session._runner.pid}")
    assert not os.path.exists(f"/proc/{session._runner.pid}")


def test_runner_holds_nothing_of_the_evaluator(unchecked, plan_of, out):
    plan, _ = plan_of("__global__ void k(int* y) { y[0] = 1; }", [out((1,), "int32")])
    with cpu.Session(cpu.compile(plan, Limits()), Limits()) as session:
        maps = pathlib.Path(f"/proc/{session._runner.pid}/maps").read_text()
        environment = pathlib.Path(f"/proc/{session._runner.pid}/environ").read_bytes()
    assert "libpython" not in maps
    names = {entry.split(b"=")[0] for entry in environment.split(b"\0") if entry}
    tunables = {name for name in names if name.startswith(b"glibc.")}  # glibc takes the list apart where it lies
    assert names - tunables == {b"GLIBC_TUNABLES", b"LC_ALL", b"LD_BIND_NOW"}


def confined(profile: str, body: str, arguments: str = "") -> subprocess.CompletedProcess:
    code = f"import os, resource, socket, evaluator._core as core\nprint(core.confine({profile!r}{arguments}))\n{body}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


ATTEMPTS = """
for name, attempt in {
    "read": lambda: open("/etc/passwd"), "create": lambda: open("/tmp/x", "w"), "fork": os.fork,
    "kill": lambda: os.kill(os.getppid(), 0), "socket": lambda: socket.socket(), "unlink": lambda: os.unlink("/tmp/x"),
}.items():
    try:
        attempt()
        print("ALLOWED", name)
    except OSError as error:
        print("refused", name, error.errno)
print("system", os.system("exit 0"))
"""


def test_tracer_profile_computes_and_nothing_else():
    run = confined("tracer", ATTEMPTS, ", limits={'cpu_s': 5}")
    assert run.returncode == 0, run.stderr
    assert "ALLOWED" not in run.stdout
    assert run.stdout.count("refused") == 6
    assert "system 0" not in run.stdout
    assert "'missing': []" in run.stdout


def test_tracer_profile_reads_only_what_it_is_given(tmp_path):
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.write_text("yes")
    other.write_text("no")
    body = f"print(open({str(allowed)!r}).read())\ntry:\n open({str(other)!r})\nexcept PermissionError:\n print('kept')"
    run = confined("tracer", body, f", readable=[{str(allowed)!r}]")
    assert run.stdout.split()[-2:] == ["yes", "kept"], run.stderr


def test_compiler_profile_writes_only_where_it_may(tmp_path):
    writable = tmp_path / "writable"
    writable.mkdir()
    body = (
        f"open({str(writable / 'a')!r}, 'w').write('x')\n"
        f"for path in ({str(tmp_path / 'b')!r}, '/etc/x'):\n"
        " try:\n  open(path, 'w'); print('ALLOWED')\n except OSError:\n  print('refused')\n"
        "try:\n socket.socket(); print('ALLOWED')\nexcept OSError:\n print('refused')\n"
        "print(os.system('exit 3') >> 8)"
    )
    run = confined("compiler", body, f", readable=['/usr', '/bin', '/lib', '/lib64'], writable=[{str(writable)!r}]")
    assert run.stdout.split()[-4:] == ["refused", "refused", "refused", "3"], run.stderr
    assert (writable / "a").read_text() == "x"


def test_limits_only_shrink():
    body = "print(resource.getrlimit(resource.RLIMIT_CPU)[0])\n"
    body += "core.confine('compiler', limits={'cpu_s': 9})\nprint(resource.getrlimit(resource.RLIMIT_CPU)[0])"
    run = confined("compiler", body, ", limits={'cpu_s': 5, 'open_files': 50}, layers=['rlimits']")
    assert run.stdout.split()[-2:] == ["5", "5"], run.stderr


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("core.confine('nobody')", "unknown profile 'nobody': expected tracer, compiler, nvrtc, program or gpu"),
        ("core.confine('tracer', layers=['walls'])", "unknown layer 'walls': expected rlimits, landlock or seccomp"),
        ("core.confine('tracer', limits={'cpu': 1})", "unknown limit 'cpu': expected one of cpu_s"),
        ("core.confine('tracer', limits={'cpu_s': -1})", "limit cpu_s is negative"),
    ],
)
def test_wrong_requests_are_named(call, words):
    code = f"import evaluator._core as core\ntry:\n {call}\nexcept ValueError as error:\n print(error)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert words in run.stdout, run.stderr
