"""Small programs that show how calls are made, a task for each, and a disk cache of the tests' own."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from evaluator.program.identity import sha256
from evaluator.records import EVALUATOR_VERSION, Mode, Outcome, Verdict
from evaluator.tasks.task import Array, Task

# Two temporaries, of which one is returned whole and one only in part; the third output is an input.
SEVERAL_OUTPUTS = r'''
import cupy as cp

source = r"""
extern "C" __global__ void split(const float* x, const int* n, float* twice, long long* count, float* pair, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  twice[i] = 2.0f * x[i];
  count[i] = n[i] + 1;
  pair[i] = x[i];
  pair[size + i] = -x[i];
}
"""
split = cp.RawKernel(source, "split")

def forward(x, n):
    size = x.size
    twice = cp.empty(x.shape, cp.float32)
    count = cp.empty((size,), cp.int64)
    pair = cp.empty((2, size), cp.float32)
    split(((size + 63) // 64,), (64,), (x, n, twice, count, pair, size))
    return twice, count, pair[1], x
'''

# Adds up into a temporary that is filled first, then scales it: each call depends on its own temporary alone.
ROW_SUMS = r'''
import cupy as cp

source = r"""
extern "C" __global__ void add_up(const float* x, float* sums, int columns) {
  atomicAdd(sums + blockIdx.x, x[blockIdx.x * columns + threadIdx.x]);
}
extern "C" __global__ void scale(const float* sums, const float* factor, float* out, int rows) {
  if (threadIdx.x < rows) out[threadIdx.x] = factor[0] * sums[threadIdx.x];
}
"""
module = cp.RawModule(code=source)
add_up = module.get_function("add_up")
scale = module.get_function("scale")

def forward(x, factor):
    rows, columns = x.shape
    sums = cp.zeros((rows,), cp.float32)
    out = cp.empty((rows,), cp.float32)
    add_up((rows,), (columns,), (x, sums, columns))
    scale((1,), (128,), (sums, factor, out, rows))
    return out
'''

# A product by a library, between two kernels' launches.
PRODUCT = r'''
import cupy as cp

source = r"""
extern "C" __global__ void add(const float* x, float value, float* out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = x[i] + value;
}
"""
add = cp.RawKernel(source, "add")

def forward(a, b):
    more = cp.empty(a.shape, cp.float32)
    add((1,), (64,), (a, cp.float32(1.0), more, a.size))
    product = cp.matmul(more, b)
    out = cp.empty(product.shape, cp.float32)
    add((1,), (64,), (product, cp.float32(-1.0), out, product.size))
    return out
'''

# Counts its calls in a variable of the module and puts it back, as a kernel does whose last block tidies up.
COUNTING = r'''
import cupy as cp

source = r"""
__device__ int turn;
extern "C" __global__ void take_turns(const float* x, float* out) {
  turn += 1;
  out[0] = x[0] + turn;
  turn = 0;
}
"""
take_turns = cp.RawKernel(source, "take_turns")

def forward(x):
    out = cp.empty((1,), cp.float32)
    take_turns((1,), (1,), (x, out))
    return out
'''

# Reads one element too far wherever the first element is negative.
FAULTY = r'''
import cupy as cp

source = r"""
extern "C" __global__ void shift(const float* x, float* out, int size) {
  int i = threadIdx.x;
  if (i < size) out[i] = x[x[0] < 0.0f ? i + 4096 : i];
}
"""
shift = cp.RawKernel(source, "shift")

def forward(x):
    out = cp.empty(x.shape, cp.float32)
    shift((1,), (64,), (x, out, x.size))
    return out
'''


def task(name: str, *arrays: Array) -> Task:
    source = f"def forward(nn, {', '.join(array.argument for array in arrays)}):\n    ...\n"
    return Task(id=name, name=name, family="test", source=source, sizes={"cpu": arrays})


TASKS = {
    "several_outputs": task("several_outputs", Array("x", (100,)), Array("n", (100,), "int32")),
    "row_sums": task("row_sums", Array("x", (8, 32)), Array("norm.factor", (1,), parameter=True)),
    "product": task("product", Array("a", (4, 8)), Array("b", (8, 5))),
    "counting": task("counting", Array("x", (1,))),
    "faulty": task("faulty", Array("x", (64,))),
}
TEXTS = {
    "several_outputs": SEVERAL_OUTPUTS,
    "row_sums": ROW_SUMS,
    "product": PRODUCT,
    "counting": COUNTING,
    "faulty": FAULTY,
}


def forms(*arrays: tuple[tuple[int, ...], str]) -> tuple[tuple[tuple[int, ...], np.dtype], ...]:
    return tuple((shape, np.dtype(dtype)) for shape, dtype in arrays)


def verdict_on(name: str, device: str = "cpu") -> Verdict:
    """What the judge would say of one of the programs above."""
    return Verdict(
        outcome=Outcome.OK,
        rung=None,
        message="",
        line=None,
        task=name,
        size="cpu",
        device=device,
        mode=Mode.QUICK,
        program_sha256=sha256(TEXTS[name]),
        evaluator_version=EVALUATOR_VERSION,
        seeds=(0,),
        errors=(),
        times={},
        speedups={},
        speedup=None,
        own_kernel_share=None,
        peak_bytes=None,
        floor_us=None,
        compiler={},
        rung_ms={},
    )


@dataclasses.dataclass(frozen=True)
class Made:
    """One of the programs above, as arguments of `load` and `jax_call`."""

    text: str
    options: dict


@pytest.fixture
def made() -> Callable[..., Made]:
    """made(name): the program with its verdict on a device; other options replace those."""

    def make(name: str, device: str = "cpu", **options: object) -> Made:
        verified = {} if "allow_unverified" in options else {"verdict": verdict_on(name, device)}
        return Made(TEXTS[name], {"task": TASKS[name], "device": device, **verified, **options})

    return make


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(1)
