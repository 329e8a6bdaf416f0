"""Programs on `cuda` as far as a machine without a GPU can see: where buffers lie, and what the driver is asked."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from evaluator.calling.placement import place
from evaluator.calling.preparation import Preparation
from evaluator.calling.queued import QueuedProgram
from evaluator.calling.source import find
from evaluator.devices.cuda import toolkit
from evaluator.program.plan import Buffer, Copy, Matmul, Plan, View
from evaluator.program.trace import trace
from evaluator.records import Limits, ProgramFault

from .conftest import ROW_SUMS, SEVERAL_OUTPUTS, TASKS, forms

HERE = pathlib.Path(__file__).parent
DRIVER = HERE.parents[2] / "csrc" / "cuda" / "driver.hpp"
NEEDS_NVRTC = pytest.mark.skipif(not toolkit.installed(), reason="no NVRTC: pip install 'cudal1-jax[dev]'")


def buffers(*temporaries: tuple[int, ...]) -> tuple[Buffer, ...]:
    rest = (Buffer(f"t{i}", "temporary", "float32", shape) for i, shape in enumerate(temporaries))
    return (Buffer("x", "input", "float32", (10,)), *rest)


def plan_of(*outputs: View, temporaries: tuple[tuple[int, ...], ...] = ()) -> Plan:
    return Plan(buffers(*temporaries), (), (), outputs)


def test_a_temporary_that_is_returned_whole_lies_in_its_result():
    found = place(plan_of(View(1, 0, (5, 2)), temporaries=((10,),)))
    assert (found.buffers, found.copies, found.array_bytes, found.scratch_bytes) == (((0, 0), (1, 0)), (), (40, 40), 0)


def test_what_is_returned_twice_or_in_part_is_copied():
    whole, again, part, given = View(1, 0, (10,)), View(1, 0, (10,)), View(2, 4, (4,)), View(0, 0, (10,))
    found = place(plan_of(whole, again, part, given, temporaries=((10,), (8,))))
    assert found.buffers == ((0, 0), (1, 0), (5, 0))
    assert found.copies == ((again, (2, 0)), (part, (3, 0)), (given, (4, 0)))
    assert found.scratch_bytes == 256


def test_temporaries_are_apart_and_aligned():
    found = place(plan_of(View(0, 0, (10,)), temporaries=((1,), (65,), (0,), (2,))))
    assert found.buffers == ((0, 0), (2, 0), (2, 256), (1, 0), (2, 768))
    assert found.scratch_bytes == 1024


def test_a_place_counts_elements_of_the_dtype():
    plan = plan_of(View(0, 0, (10,)), temporaries=((4,), (8,)))
    assert place(plan).place(plan, View(2, 3, (2,))) == (2, 256 + 12)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_a_library_step_without_cupy_is_unsupported():
    a = View(0, 0, (2, 5))
    step = Matmul(a, View(0, 0, (5, 2)), View(1, 0, (2, 2)), False, False, 7)
    plan = Plan(buffers((2, 2)), (), (Copy(a, a, 6), step), (View(1, 0, (2, 2)),))
    with pytest.raises(ProgramFault, match=r"library step \(matmul\), which needs CuPy") as caught:
        QueuedProgram(plan, 90, Limits())
    assert (caught.value.fault.outcome, caught.value.fault.line) == ("unsupported", 7)


@NEEDS_NVRTC
def test_a_program_is_compiled_for_a_gpu_that_is_not_there():
    source = find(SEVERAL_OUTPUTS, task=TASKS["several_outputs"], device="cuda", allow_unverified=True)
    prepared = Preparation(source, architecture=90).of(forms(((100,), "float32"), ((100,), "int32")))
    assert prepared.core.steps == 3  # the kernel, and copies of half an array and of an input
    assert prepared.core.bytes == [400, 400, 400, 800, 400, 400, 1024]


@pytest.fixture(scope="module")
def stub_driver(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a libcuda.so.1 that has every function the evaluator looks for."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    folder = tmp_path_factory.mktemp("driver")
    text = (HERE / "stub_driver.cpp").read_text()
    wanted = re.findall(r'library_\.find\("(\w+)"', DRIVER.read_text())
    others = (f'extern "C" int {name}() {{ return 999; }}' for name in wanted if f" {name}(" not in text)
    (folder / "driver.cpp").write_text("\n".join([text, *others]))
    library = folder / "libcuda.so.1"
    command = [compiler, "-std=c++17", "-shared", "-fPIC", str(folder / "driver.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def on_stub(stub_driver):
    """on_stub(script): what the script leaves in `found`; its driver only writes down what it is asked."""

    def run(script: str):
        begin = (
            "import ctypes, json, sys\nimport numpy as np\nfrom evaluator import _core\n"
            "driver = ctypes.CDLL('libcuda.so.1')\ndriver.stub_log.restype = ctypes.c_char_p\n"
            "def log(): return driver.stub_log().decode().splitlines()\n"
            "def parameters(name, *n): driver.stub_parameters(name.encode(), (ctypes.c_int * len(n))(*n), len(n))\n"
        )
        environment = {**os.environ, "LD_LIBRARY_PATH": str(stub_driver), "PYTHONPATH": str(HERE.parents[2])}
        command = [sys.executable, "-c", f"{begin}\n{script}\nprint(json.dumps(found))"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_launch_gets_addresses_and_numbers_in_the_kernels_own_types(on_stub):
    found = on_stub("""
program = _core.CudaProgram([b"cubin"], [64, 64, 512], False)
arguments = [(0, 0), (1, 16), (2, 256), (7).to_bytes(4, "little"), (5).to_bytes(8, "little")]
program.add_launch(0, "k", (3, 2, 1), (32, 1, 1), 1000, arguments)
parameters("k", 8, 8, 8, 4, 8)
program.queue(0x10, [0x1000, 0x2000, 0x3000], 0, 1)
found = log()
""")
    addresses = "0000000000001000 0000000000002010 0000000000003100"
    assert found == ["load in 1", "set 8 of k to 1000", f"k 3 2 1 32 1 1 1000 on 10 {addresses} 00000007 {5:016x}"]


def test_modules_are_loaded_once_for_every_context(on_stub):
    found = on_stub("""
program = _core.CudaProgram([b"one", b"two"], [], False)
program.add_launch(1, "k", (1, 1, 1), (1, 1, 1), 0, [])
for stream in (0x10, 0x11, 0x20, 0x10, 0x21):
    program.queue(stream, [], 0, 1)
found = log()
""")
    launches = [f"k 1 1 1 1 1 1 0 on {stream}" for stream in (10, 11, 20, 10, 21)]
    assert found == ["load in 1"] * 2 + launches[:2] + ["load in 2"] * 2 + launches[2:]


def test_streams_share_modules_unless_these_have_variables(on_stub):
    found = on_stub("""
program = _core.CudaProgram([b"one"], [], True)
program.add_launch(0, "k", (1, 1, 1), (1, 1, 1), 0, [])
for stream in (0x10, 0x11, 0x10, 0x20):
    program.queue(stream, [], 0, 1)
found = [line for line in log() if line.startswith("load")]
""")
    assert found == ["load in 1", "load in 1", "load in 2"]


@NEEDS_NVRTC
def test_a_program_with_variables_of_its_own_has_some_for_every_stream(on_stub):
    found = on_stub("""
from tests.evaluator.calling.conftest import COUNTING, TASKS, forms
from evaluator.calling.preparation import Preparation
from evaluator.calling.source import find
source = find(COUNTING, task=TASKS["counting"], device="cuda", allow_unverified=True)
program = Preparation(source, architecture=90).of(forms(((1,), "float32")))
memory = [np.zeros(n, np.uint8) for n in program.core.bytes]
for stream in (0x10, 0x11, 0x10):
    program.queue(stream, [array.ctypes.data for array in memory])
found = [line for line in log() if line.startswith("load")]
""")
    assert found == ["load in 1"] * 2


def test_a_call_stands_where_it_was_put_and_gets_stream_and_buffers(on_stub):
    found = on_stub("""
seen = []
def call(stream, buffers):
    seen.append([stream, buffers, len(log())])
    if buffers == [3, 4]: raise ValueError("a library's complaint")
program = _core.CudaProgram([b"one"], [8, 8], False)
for name in ("before", None, "behind"):
    if name is None: program.add_call(call)
    else: program.add_launch(0, name, (1, 1, 1), (1, 1, 1), 0, [])
program.queue(0x10, [1, 2], 0, 3)
try: program.queue(0x10, [3, 4], 0, 3)
except ValueError as error: seen.append(str(error))
found = [seen, [line.split()[0] for line in log()]]
""")
    calls, log = found
    assert calls == [[16, [1, 2], 2], [16, [3, 4], 4], "a library's complaint"]
    assert log == ["load", "before", "behind", "before"]


@NEEDS_NVRTC
def test_a_library_step_gets_the_plans_buffers_on_the_callers_stream(on_stub):
    found = on_stub("""
import importlib.util, types
from tests.evaluator.calling import stub_cupy
from tests.evaluator.calling.conftest import PRODUCT, TASKS, forms
sys.modules["cupy"] = stub_cupy
stub_cupy.__spec__ = importlib.util.spec_from_loader("cupy", None)
seen = []
class Executable:
    def __init__(self, device, compiled): self.steps = compiled.plan.steps
    def queue(self, addresses):
        seen.append([list(stub_cupy.entered), [type(step).__name__ for step in self.steps], list(addresses)])
execution = types.ModuleType("execution")
execution.Executable = Executable
sys.modules["evaluator.devices.cuda.execution"] = execution
_core.CudaDevice = lambda ordinal: None
from evaluator.calling.preparation import Preparation
from evaluator.calling.source import find
source = find(PRODUCT, task=TASKS["product"], device="cuda", allow_unverified=True)
program = Preparation(source, architecture=90).of(forms(((4, 8), "float32"), ((8, 5), "float32")))
memory = [np.zeros(n, np.uint8) for n in program.core.bytes]
addresses = [array.ctypes.data for array in memory]
program.queue(0x11, addresses)
found = [seen, addresses, program.needs_memory, [line.split()[0] for line in log()]]
""")
    seen, (a, b, out, scratch), needs_memory, log = found
    assert seen == [[[0x11], ["Matmul"], [a, b, scratch, scratch + 256, out]]]
    assert (needs_memory, log) == (True, ["load", "add", "add"])


def test_threads_load_modules_once(on_stub):
    found = on_stub("""
import concurrent.futures
program = _core.CudaProgram([b"one"], [], False)
program.add_launch(0, "k", (1, 1, 1), (1, 1, 1), 0, [])
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda _: program.queue(0x10, [], 0, 1), range(200)))
found = [sum(line.startswith(word) for line in log()) for word in ("load", "k")]
""")
    assert found == [1, 200]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_fills_and_copies_reach_their_bytes_and_no_others(on_stub, width):
    found = on_stub(f"""
memory = np.zeros(100, np.uint8)
program = _core.CudaProgram([], [100], False)
program.add_fill((0, 8), bytes(range(1, {width} + 1)), 3)
program.add_fill((0, 90), b"\\1", 0)
program.add_copy((0, 8), (0, 60), {2 * width})
program.add_copy((0, 0), (0, 99), 0)
program.queue(0x10, [memory.ctypes.data], 0, program.steps)
found = memory.tolist()
""")
    pattern = list(range(1, width + 1))
    wanted = np.zeros(100, np.uint8)
    wanted[8 : 8 + 3 * width], wanted[60 : 60 + 2 * width] = pattern * 3, pattern * 2
    assert found == wanted.tolist()


def test_what_the_driver_refuses_is_an_error(on_stub):
    found = on_stub("""
found = []
program = _core.CudaProgram([b"bad"], [8], False)
program.add_launch(0, "k", (1, 1, 1), (1, 1, 1), 0, [])
for stream, buffers in ((0x10, [1]), (0, [1]), (0x10, [1, 2])):
    try: program.queue(stream, buffers, 0, 1)
    except Exception as error: found.append([type(error).__name__, error.args[0]])
""")
    assert found == [
        ["CudaError", "cuModuleLoadData failed: STUB_ERROR (of the stub)"],
        ["CudaError", "cuStreamGetCtx failed: STUB_ERROR (of the stub)"],
        ["ValueError", "the program has 1 buffers, got 2"],
    ]


@NEEDS_NVRTC
def test_a_traced_program_is_queued_on_the_callers_arrays(on_stub):
    """The launch itself does nothing here: what was filled before it and is copied behind it shows where things lie."""
    plan = trace(ROW_SUMS, TASKS["row_sums"].arrays_at("cpu")[:1], None, None, TASKS["row_sums"].arrays_at("cpu")[1:])
    assert place(plan).array_bytes == (1024, 4, 32)
    found = on_stub("""
from tests.evaluator.calling.conftest import ROW_SUMS, TASKS, forms
from evaluator.calling.preparation import Preparation
from evaluator.calling.source import find
source = find(ROW_SUMS, task=TASKS["row_sums"], device="cuda", allow_unverified=True)
program = Preparation(source, architecture=90).of(forms(((8, 32), "float32"), ((1,), "float32")))
memory = [np.full(n, 0xff, np.uint8) for n in program.core.bytes]
parameters("add_up", 8, 8, 4)
parameters("scale", 8, 8, 8, 4)
addresses = [array.ctypes.data for array in memory]
program.queue(0x10, addresses)
program.queue(0x11, addresses)  # has no variables of its own: no need to load it again
found = [addresses, log(), memory[3].tolist()]
""")
    (x, factor, out, scratch), log, sums = found
    add_up, scale = f"{x:016x} {scratch:016x} {32:08x}", f"{scratch:016x} {factor:016x} {out:016x} {8:08x}"
    assert log == [
        "load in 1",
        f"add_up 8 1 1 32 1 1 0 on 10 {add_up}",
        f"scale 1 1 1 128 1 1 0 on 10 {scale}",
        f"add_up 8 1 1 32 1 1 0 on 11 {add_up}",
        f"scale 1 1 1 128 1 1 0 on 11 {scale}",
    ]
    assert sums[:32] == [0] * 32
    assert sums[32:] == [255] * 224


@NEEDS_NVRTC
def test_load_hands_its_arrays_to_the_program(on_stub):
    found = on_stub("""
from tests.evaluator.calling import stub_cupy
from tests.evaluator.calling.conftest import SEVERAL_OUTPUTS, TASKS
from evaluator.calling import preparation
from evaluator.calling.loaded import load
sys.modules["cupy"] = stub_cupy
preparation._architecture = lambda: 90
loaded = load(SEVERAL_OUTPUTS, task=TASKS["several_outputs"], device="cuda", allow_unverified=True)
x, n = stub_cupy.array(np.arange(100, dtype=np.float32)), stub_cupy.array(np.arange(100, dtype=np.int32))
parameters("split", 8, 8, 8, 8, 8, 4)
twice, count, negative, same = loaded(x, n)
launch = log()[-1].split()
found = [
    [str(array.dtype) for array in (twice, count, negative, same)],
    launch[:10],
    [int(word, 16) for word in launch[10:14]] == [array.data.ptr for array in (x, n, twice, count)],
    same.tolist() == x.tolist(),
    len(set(negative.tolist())),  # copied from scratch memory, where the kernel wrote nothing
]
""")
    dtypes = ["float32", "int64", "float32", "float32"]
    assert found[0] == dtypes
    assert found[1] == ["split", "2", "1", "1", "64", "1", "1", "0", "on", "10"]
    assert found[2:] == [True, True, 1]


def test_a_machine_without_a_gpu_says_so():
    source = find(SEVERAL_OUTPUTS, task=TASKS["several_outputs"], device="cuda", allow_unverified=True)
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU and its driver: there is none; pass device='cpu'"):
        Preparation(source).of(forms(((100,), "float32"), ((100,), "int32")))
