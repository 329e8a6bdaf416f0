"""What the fuzzer starts from: the programs of `kernels/`, the bad ones of `tests/candidates/`, completions, a plan."""

import functools
import json
import pathlib

from evaluator.program import plan_reader

ROOT = pathlib.Path(__file__).resolve().parents[3]


@functools.cache
def programs() -> tuple[str, ...]:
    """Honest and bad programs, shortest first."""
    files = [*(ROOT / "kernels").rglob("*.py"), *(ROOT / "tests" / "candidates").glob("*.py")]
    return tuple(sorted((file.read_text(encoding="utf-8", errors="surrogateescape") for file in files), key=len))


def completion(program: str) -> str:
    """A program as the policy delivers it."""
    return (
        "## Performance analysis\nThe reference reads `x` twice; memory bounds it.\n\n"
        f"## Algorithm design\nOne pass, `float4` loads.\n\n## Code\n```python\n{program}```\n"
    )


def view(buffer: int, offset: int, *shape: int) -> dict:
    return {"buffer": buffer, "offset": offset, "shape": list(shape)}


SOURCE = r"""
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
  __shared__ float kept[256];
  extern __shared__ float more[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x % 256] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = factor * kept[threadIdx.x % 256];
}
"""


def plan_record() -> dict:
    """A plan with a step of every kind that the emulator runs within milliseconds."""
    return {
        "schema": 1,
        "buffers": [
            {"name": "a", "role": "input", "dtype": "float32", "shape": [64, 32]},
            {"name": "b", "role": "input", "dtype": "float16", "shape": [8, 4]},
            {"name": "t0", "role": "temporary", "dtype": "float32", "shape": [32, 64]},
            {"name": "t1", "role": "temporary", "dtype": "float32", "shape": [64, 64]},
            {"name": "t2", "role": "temporary", "dtype": "int32", "shape": [5]},
            {"name": "t3", "role": "temporary", "dtype": "float16", "shape": [8, 8]},
        ],
        "modules": [{"source": SOURCE, "options": ["-std=c++17"], "kernels": ["scale"]}],
        "steps": [
            {
                "op": "launch",
                "module": 0,
                "kernel": "scale",
                "grid": [8, 1, 1],
                "block": [256, 1, 1],
                "shared_bytes": 64,
                "args": [
                    {"view": view(0, 0, 64, 32)},
                    {"view": view(3, 0, 64, 32)},
                    {"scalar": "float32", "value": "0.5"},
                    {"int": 2048},
                ],
                "line": 18,
            },
            {"op": "fill", "view": view(4, 1, 4), "value": "7", "line": 19},
            {"op": "fill", "view": view(3, 0, 64, 64), "value": "-0.0", "line": 19},
            {"op": "copy", "from": view(0, 0, 32, 64), "to": view(2, 0, 32, 64), "line": 20},
            {
                "op": "matmul",
                "a": view(0, 0, 64, 32),
                "b": view(2, 0, 32, 64),
                "out": view(3, 0, 64, 64),
                "transpose_a": False,
                "transpose_b": False,
                "line": 21,
            },
            {
                "op": "matmul",
                "a": view(1, 0, 8, 4),
                "b": view(1, 0, 8, 4),
                "out": view(5, 0, 8, 8),
                "transpose_a": False,
                "transpose_b": True,
                "line": 21,
            },
            {
                "op": "conv",
                "x": view(0, 0, 2, 4, 8, 8),
                "weight": view(2, 0, 6, 2, 3, 3),
                "out": view(3, 0, 2, 6, 4, 4),
                "stride": [2, 2],
                "padding": [1, 1],
                "dilation": [1, 1],
                "output_padding": [0, 0],
                "groups": 2,
                "transposed": False,
                "line": 22,
            },
            {
                "op": "attention",
                "query": view(0, 0, 2, 8, 4),
                "key": view(0, 64, 2, 6, 4),
                "value": view(0, 112, 2, 6, 5),
                "out": view(3, 0, 2, 8, 5),
                "causal": True,
                "line": 23,
            },
        ],
        "outputs": [view(3, 0, 64, 64), view(4, 0, 5)],
    }


@functools.cache
def plan():
    return plan_reader.from_json(json.dumps(plan_record()))


def words(content: bytes) -> list[int]:
    """A tape as the numbers that it is made of."""
    return [int.from_bytes(content[i : i + 8], "little") for i in range(0, len(content), 8)]


def packed(numbers: list[int]) -> bytes:
    return b"".join((number & (2**64 - 1)).to_bytes(8, "little") for number in numbers)
