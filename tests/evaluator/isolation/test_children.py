"""The processes that programs pass through, each with one layer alone. The error number tells which layer refused."""

import contextlib
import os
import pathlib
import socket
import sys
import time

import pytest

from evaluator.devices import toolchain
from evaluator.devices.cuda import toolkit
from evaluator.devices.cuda.compiler import Compiler
from evaluator.program.trace import trace
from evaluator.program.tracer_process import TracerProcess
from evaluator.records import Limits, Outcome, ProgramFault
from evaluator.tasks.task import Array

ARRAYS = [Array("a", (4,))]
OUTPUTS = [((4,), "float32")]
REACH = """
def reach():
    for kind in ().__class__.__base__.__subclasses__():
        if kind.__name__ == "_wrap_close":
            return kind.__init__.__globals__
"""


def traced(body, layer):
    """The fault of a program that reaches for the os module, in a tracer with one layer."""
    text = f"{REACH}def forward(a):\n    {body}\n    return a\n"
    with pytest.warns(RuntimeWarning, match="the tracer runs without"), pytest.raises(ProgramFault) as caught:
        trace(text, ARRAYS, OUTPUTS, Limits(confinement=(layer,)))
    return caught.value.fault


@pytest.mark.parametrize(
    ("layer", "body", "words"),
    [
        ("seccomp", 'reach()["open"]("/etc/passwd", 0)', "Errno 1]"),
        ("seccomp", 'reach()["fork"]()', "Errno 1]"),
        ("seccomp", 'reach()["kill"](reach()["getppid"](), 0)', "Errno 1]"),
        ("landlock", 'reach()["open"]("/etc/passwd", 0)', "Errno 13]"),
        ("landlock", 'reach()["listdir"]("/")', "Errno 13]"),
        ("landlock", 'reach()["unlink"]("/etc/hostname")', "Errno 13]"),
        ("rlimits", 'reach()["open"]("/etc/passwd", 0)', "Errno 24]"),
        ("rlimits", 'reach()["pipe"]()', "Errno 24]"),
        ("rlimits", 'x = "a" * (1 << 33)', "out of memory"),
    ],
)
def test_the_tracer_with_one_layer(layer, body, words):
    fault = traced(body, layer)
    assert fault.outcome is Outcome.TRACE_ERROR
    assert words in fault.message


def test_a_tracer_that_is_told_to_compute_for_ever_uses_up_its_limit_alone():
    with TracerProcess(cpu_s=1, memory_bytes=512 << 20, layers=("rlimits",)) as child:
        request = {"text": "for i in range(1 << 60):\n    pass\n", "arrays": [], "dict_keys": []}
        with pytest.warns(RuntimeWarning), pytest.raises(ProgramFault, match="ended by signal"):
            child.ask({**request, "max_steps": 1, "max_bytes": 1}, deadline_s=60.0)


def run(command, folder, *, layers, readable=(), cpu_s=5.0):
    return toolchain.run_confined(toolchain.find(), command, readable, folder, cpu_s, layers)


@contextlib.contextmanager
def degraded():
    with pytest.warns(RuntimeWarning, match="the compiler runs without"):
        yield


def included(folder, secret, layers):
    """What the compiler says of a text that includes a file outside."""
    source = folder / "text.cpp"
    source.write_text(f'#include "{secret}"\n')
    return run([toolchain.find().compiler, "-fsyntax-only", str(source)], folder, layers=layers).errors


def test_the_compiler_with_landlock_alone_reads_no_file_outside(tmp_path):
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("a secret of 42 bytes\n")
    with degraded():
        assert "of 42 bytes" in included(folder, secret, ())
    with degraded():
        assert "of 42 bytes" not in included(folder, secret, ("landlock",))
    assert "of 42 bytes" not in included(folder, secret, ("rlimits", "landlock", "seccomp"))


def test_the_compiler_with_landlock_alone_writes_nowhere_else(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    source = folder / "text.cpp"
    source.write_text("int x;\n")
    compiler = toolchain.find().compiler
    with degraded():
        inside = run([compiler, "-c", str(source), "-o", str(folder / "o")], folder, layers=("landlock",))
        outside = run([compiler, "-c", str(source), "-o", str(tmp_path / "o")], folder, layers=("landlock",))
    assert (inside.exit_code, (folder / "o").exists()) == (0, True)
    assert outside.exit_code != 0
    assert not (tmp_path / "o").exists()


def test_the_compiler_with_seccomp_alone_has_no_network(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"
        with degraded():
            free = run([sys.executable, "-c", code], tmp_path, layers=())
            held = run([sys.executable, "-c", code], tmp_path, layers=("seccomp",))
    assert free.exit_code == 0
    assert held.exit_code == 1
    assert "PermissionError" in held.errors


@pytest.mark.parametrize(
    "text",
    [
        "template <int N> struct A { A<N - 1> x, y; }; template <> struct A<0> {}; A<100000> a;",
        pytest.param(
            "constexpr int f(long n) { return n ? f(n - 1) + f(n - 1) : 0; } constexpr int x = f(60);",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_compiler_with_rlimits_alone_survives_bombs(tmp_path, text):
    (tmp_path / "text.cpp").write_text(text)
    command = [toolchain.find().compiler, "-c", "text.cpp", "-ftemplate-depth=1000000", "-fconstexpr-depth=100000"]
    began = time.monotonic()
    with degraded():
        done = run([*command, "-fconstexpr-ops-limit=9000000000000"], tmp_path, layers=("rlimits",), cpu_s=1.0)
    assert done.exit_code != 0
    assert time.monotonic() - began < 60.0  # what it would take by itself is hours


def test_the_compiler_with_rlimits_alone_fills_no_disk(tmp_path):
    def grow(name, layers):
        with degraded():
            return run(["/usr/bin/truncate", "--size=300M", str(tmp_path / name)], tmp_path, layers=layers)

    free, held = grow("free", ()), grow("held", ("rlimits",))
    assert free.exit_code == 0
    assert held.exit_code != 0


def included_by_nvrtc(secret, layers):
    """What NVRTC says of a text that includes a file outside."""
    try:
        tools = toolkit.find()
    except ProgramFault as error:
        pytest.skip(str(error))
    with Compiler(Limits(confinement=layers), tools) as compiler, pytest.raises(ProgramFault) as caught:
        compiler.compile(f'#include "{secret}"', "kernel.cu", ["-arch=sm_90"], [])
    assert caught.value.fault.outcome is Outcome.COMPILE_ERROR
    return caught.value.fault.message


def test_nvrtc_with_landlock_alone_reads_no_file_outside(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a secret of 42 bytes\n")
    with pytest.warns(RuntimeWarning, match="NVRTC runs without rlimits, landlock, seccomp"):
        assert "secret of 42" in included_by_nvrtc(secret, ())
    with pytest.warns(RuntimeWarning, match="NVRTC runs without rlimits, seccomp"):
        assert "secret of 42" not in included_by_nvrtc(secret, ("landlock",))


def running(mark):
    """Ids of processes that have `mark` among their arguments."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def ended(mark):
    """Whether no process with this mark is left, a moment after it was killed."""
    for _ in range(500):
        if not running(mark):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("how", ["sleep {mark} &", "(sleep {mark} >/dev/null 2>&1 &) &", "setsid sleep {mark} 2>&- &"])
def test_nothing_that_a_compiler_started_is_left(tmp_path, how):
    mark = f"{os.getpid()}.{abs(hash(how)) % 1000}"
    done = run(["/bin/sh", "-c", how.format(mark=mark)], tmp_path, layers=("landlock", "rlimits", "seccomp"), cpu_s=0.2)
    assert done.exit_code in (0, -9)
    assert ended(mark)


def test_a_compiler_that_says_too_much_is_ended(tmp_path):
    done = run(["/bin/sh", "-c", "yes error: >&2"], tmp_path, layers=("landlock", "rlimits", "seccomp"))
    assert done.exit_code == 1
    assert 4 << 20 < len(done.errors) < 5 << 20
