"""One kernel for any element-wise expression over arrays that broadcast, with 16-byte loads wherever they fit.

Stock CuPy kernels handle one element a thread and reach 40 % of the H200's bandwidth at benchmark sizes; PyTorch's
reach all of it, and so must these.
"""

import dataclasses
import functools
import math

import cupy as cp
import numpy as np

from evaluator.nn.cupy_nn.launch import launch

_THREADS = 256
_UNROLLED = {True: 2, False: 4}  # vectors, or elements, per thread
_LETTERS = "abcdefgh"
_CTYPES = {"f": "float", "?": "bool", "l": "long long"}
_BYTES = {"f": 4, "?": 1, "l": 8}

Strides = tuple[tuple[int, ...], ...]  # per operand, per dimension, in elements


def apply(expression: str, *operands: cp.ndarray | float) -> cp.ndarray:
    """`expression` in the letters a, b, c ... of `operands`, element by element, with NumPy's broadcasting.

    Arrays are float32, bool or int64, of any strides; numbers are float32. The result is float32, contiguous, and of
    the type of the first array.
    """
    arrays = [x for x in operands if isinstance(x, cp.ndarray)]
    facts = [(x.shape, x.strides, x.dtype.char, x.data.ptr % 16 == 0) for x in arrays]
    plan = _plan(expression, tuple(isinstance(x, cp.ndarray) for x in operands), tuple(facts))
    kind = next((type(x) for x in arrays if x.dtype == cp.float32), type(arrays[0]))  # a mask may come first
    out = kind(plan.shape, cp.float32)
    if plan.blocks:
        values = [x if isinstance(x, cp.ndarray) else np.float32(x) for x in operands]
        launch(plan.text, "fused", (plan.blocks,), (_THREADS,), (*values, out, *plan.counts))
    return out


def contiguous(x: cp.ndarray) -> cp.ndarray:
    """`x` itself where its elements lie side by side in order, else a copy."""
    if x.flags.c_contiguous:
        return x
    return apply("a", x) if x.dtype == cp.float32 else cp.ascontiguousarray(x)


@dataclasses.dataclass(frozen=True)
class _Plan:
    shape: tuple[int, ...]  # of the result
    text: str
    blocks: int  # 0 where there is nothing to compute
    counts: tuple[int, ...]  # the kernel's arguments after the arrays: lengths, strides, size


@functools.lru_cache(maxsize=4096)  # a launch must not cost the host more than PyTorch's does
def _plan(
    expression: str, is_array: tuple[bool, ...], facts: tuple[tuple[tuple[int, ...], tuple[int, ...], str, bool], ...]
) -> _Plan:
    """What to launch for arrays of these shapes, strides, dtypes and alignments."""
    shape = np.broadcast_shapes(*(given for given, _, _, _ in facts))
    size = math.prod(shape)
    steps = tuple(_in_elements(given, strides, len(shape), _BYTES[char]) for given, strides, char, _ in facts)
    sizes, collapsed = _collapse(shape, steps)
    floats = all(char == "f" for _, _, char, _ in facts)
    aligned = all(fact[3] for fact, own in zip(facts, collapsed, strict=True) if own[-1])
    vector = floats and aligned and _fits_vectors(sizes, collapsed)
    chars = iter(facts)
    kinds = tuple(_CTYPES[next(chars)[2]] if array else None for array in is_array)
    inner = tuple(own[-1] for own in collapsed) if vector else ()
    last = (sizes[-1] // 4,) if vector else (sizes[-1],)
    lengths = (*sizes[1:-1], *last) if len(sizes) > 1 else ()
    units = -(-sizes[-1] // 4) * math.prod(sizes[:-1]) if vector else size
    return _Plan(
        shape=shape,
        text=_text(expression, kinds, len(sizes), inner, size >= 2**31),
        blocks=-(-units // (_THREADS * _UNROLLED[vector])) if size else 0,
        counts=(*lengths, *sum(collapsed, ()), size),
    )


def _collapse(shape: tuple[int, ...], strides: Strides) -> tuple[tuple[int, ...], Strides]:
    """The same walk in as few dimensions as can be: those of length 1 go, and neighbours that every operand passes
    through without a jump become one. At least one dimension is left."""
    sizes: list[int] = []
    steps: list[list[int]] = []  # per dimension, per operand
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        step = [operand[axis] for operand in strides]
        if sizes and all(before == size * now for before, now in zip(steps[-1], step, strict=True)):
            sizes[-1] *= size
            steps[-1] = step
        else:
            sizes.append(size)
            steps.append(step)
    if not sizes:
        return (1,), tuple((0,) for _ in strides)
    return tuple(sizes), tuple(zip(*steps, strict=True))


def _in_elements(shape: tuple[int, ...], strides: tuple[int, ...], ndim: int, itemsize: int) -> tuple[int, ...]:
    """Strides over `ndim` dimensions in elements, 0 along dimensions that broadcast, and along those of length 1."""
    own = tuple(0 if size == 1 else stride // itemsize for size, stride in zip(shape, strides, strict=True))
    return (0,) * (ndim - len(own)) + own


def _fits_vectors(sizes: tuple[int, ...], strides: Strides) -> bool:
    """Whether four neighbours along the last dimension are one aligned load, or one broadcast value, everywhere."""
    if any(steps[-1] not in (0, 1) for steps in strides):
        return False
    if len(sizes) == 1:
        return True  # the last few elements are handled one by one
    return sizes[-1] % 4 == 0 and not any(step % 4 for steps in strides if steps[-1] for step in steps[:-1])


@functools.cache
def _text(expression: str, kinds: tuple[str | None, ...], ndim: int, inner: tuple[int, ...], wide: bool) -> str:
    """CUDA text of kernel `fused`; `inner` holds each array's last stride (0 or 1) in the vector form."""
    named = list(zip(_LETTERS, kinds, strict=False))
    arrays = [letter for letter, kind in named if kind]
    value_parameters = ", ".join(f"{kind or 'float'} {letter}" for letter, kind in named)
    parameters = [f"const {kind}* __restrict__ {x}_" if kind else f"float {x}" for x, kind in named]
    parameters += ["float* __restrict__ out", *(f"Index n{axis}" for axis in range(1, ndim))]
    parameters += [f"long long {letter}{axis}" for letter in arrays for axis in range(ndim)]
    body = _vector_body(named, dict(zip(arrays, inner, strict=True)), ndim) if inner else _scalar_body(named, ndim)
    return f"""
typedef unsigned {"long long" if wide else "int"} Index;
__device__ __forceinline__ float value({value_parameters}) {{ return {expression}; }}
extern "C" __global__ void __launch_bounds__({_THREADS}) fused({", ".join(parameters)}, Index size) {{
{body}
}}
"""


def _offsets(arrays: list[str], ndim: int) -> str:
    """Statements that turn the position `rest` into an index per dimension and all but the last term of the offsets."""
    lines = [f"Index i{axis} = rest % n{axis}; rest /= n{axis};" for axis in range(ndim - 1, 0, -1)]
    lines.append("Index i0 = rest;")
    for letter in arrays:
        terms = [f"i{axis} * {letter}{axis}" for axis in range(ndim - 1)] or ["0"]
        lines.append(f"long long {letter}_at = {' + '.join(terms)};")
    return "\n    ".join(lines)


def _scalar_body(named: list[tuple[str, str | None]], ndim: int) -> str:
    arrays = [letter for letter, kind in named if kind]
    values = ", ".join(f"{x}_[{x}_at + i{ndim - 1} * {x}{ndim - 1}]" if kind else x for x, kind in named)
    return f"""  Index first = blockIdx.x * (Index){_THREADS * _UNROLLED[False]} + threadIdx.x;
  #pragma unroll
  for (int turn = 0; turn < {_UNROLLED[False]}; ++turn) {{
    Index at = first + turn * {_THREADS};
    if (at >= size) break;
    Index rest = at;
    {_offsets(arrays, ndim)}
    out[at] = value({values});
  }}"""


def _vector_body(named: list[tuple[str, str | None]], inner: dict[str, int], ndim: int) -> str:
    last = f"i{ndim - 1}"
    arrays = list(inner)
    loads, one = [], []
    for letter in arrays:
        if inner[letter]:
            loads.append(f"float4 {letter}v = *(const float4*)({letter}_ + {letter}_at + {last} * 4ll);")
        else:
            loads.append(f"float {letter}s = {letter}_[{letter}_at];")
    for part in "xyzw":
        given = [(f"{x}v.{part}" if inner[x] else f"{x}s") if kind else x for x, kind in named]
        one.append(f"value({', '.join(given)})")
    tail = ", ".join((f"{x}_[at]" if inner[x] else f"{x}_[0]") if kind else x for x, kind in named)
    guarded = f"""if (4 * unit + 4 > size) {{
      for (Index at = 4 * unit; at < size; ++at) out[at] = value({tail});
      break;
    }}"""
    return f"""  Index first = blockIdx.x * (Index){_THREADS * _UNROLLED[True]} + threadIdx.x;
  #pragma unroll
  for (int turn = 0; turn < {_UNROLLED[True]}; ++turn) {{
    Index unit = first + turn * {_THREADS};
    if (unit >= (size + 3) / 4) break;
    {guarded if ndim == 1 else ""}
    Index rest = unit;
    {_offsets(arrays, ndim)}
    {" ".join(loads)}
    *(float4*)(out + unit * (size_t)4) = make_float4({", ".join(one)});
  }}"""
