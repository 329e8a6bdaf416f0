"""Max and average pooling over one to three dimensions of CuPy arrays, with PyTorch's names, arguments and values."""

import functools
import math

import cupy as cp

from evaluator.nn.cupy_nn import reductions, shapes
from evaluator.nn.cupy_nn.exact import pooling as exact
from evaluator.nn.cupy_nn.fused import contiguous
from evaluator.nn.cupy_nn.launch import launch
from evaluator.nn.lengths import each, pooled, windows

Lengths = int | tuple[int, ...]

_THREADS = 256


def max_pool1d(
    x: cp.ndarray,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> cp.ndarray:
    return _pool(x, 1, True, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: cp.ndarray,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> cp.ndarray:
    return _pool(x, 2, True, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    x: cp.ndarray,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> cp.ndarray:
    return _pool(x, 3, True, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(x: cp.ndarray, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> cp.ndarray:
    return _pool(x, 1, False, kernel_size, stride, padding, 1, False)


def avg_pool2d(x: cp.ndarray, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> cp.ndarray:
    return _pool(x, 2, False, kernel_size, stride, padding, 1, False)


def avg_pool3d(x: cp.ndarray, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0) -> cp.ndarray:
    return _pool(x, 3, False, kernel_size, stride, padding, 1, False)


def adaptive_avg_pool1d(x: cp.ndarray, output_size: Lengths) -> cp.ndarray:
    return _adaptive_avg_pool(x, 1, output_size)


def adaptive_avg_pool2d(x: cp.ndarray, output_size: Lengths) -> cp.ndarray:
    return _adaptive_avg_pool(x, 2, output_size)


def adaptive_avg_pool3d(x: cp.ndarray, output_size: Lengths) -> cp.ndarray:
    return _adaptive_avg_pool(x, 3, output_size)


def _adaptive_avg_pool(x: cp.ndarray, ndim: int, output_size: Lengths) -> cp.ndarray:
    """One element is a mean, equal windows are a pooling; only windows of different lengths go axis by axis."""
    outs, sizes = each(output_size, ndim), x.shape[-ndim:]
    cuts = [windows(n, m) for n, m in zip(sizes, outs, strict=True)]
    if x.dtype != cp.float32:
        return exact.adaptive_avg_pool(x, cuts)
    if set(outs) == {1}:
        return reductions.mean(x, dim=tuple(range(-ndim, 0)), keepdim=True)
    if all(n % m == 0 for n, m in zip(sizes, outs, strict=True)):
        window = tuple(n // m for n, m in zip(sizes, outs, strict=True))
        return _pool(x, ndim, False, window, None, 0, 1, False)
    for axis, along in zip(range(x.ndim - ndim, x.ndim), cuts, strict=True):
        means = [reductions.mean(shapes.narrow(x, axis, start, n), dim=axis, keepdim=True) for start, n in along]
        x = shapes.cat(means, dim=axis)
    return x


def _pool(
    x: cp.ndarray,
    ndim: int,
    largest: bool,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    dilation: Lengths,
    ceil_mode: bool,
) -> cp.ndarray:
    """Windows start every `stride` (default: their length), elements `dilation` apart; averages count padding."""
    window, pad, apart = (each(lengths, ndim) for lengths in (kernel_size, padding, dilation))
    step = window if stride is None else each(stride, ndim)
    if any(2 * p > w for p, w in zip(pad, window, strict=True)):
        raise ValueError(f"pooling: padding {pad} exceeds half of the window {window}")
    sizes = x.shape[-ndim:]
    outs = tuple(pooled(*lengths, ceil_mode) for lengths in zip(sizes, window, step, pad, apart, strict=True))
    if min(outs) < 1:
        raise ValueError(f"pooling: a window of {window}, {apart} apart, does not fit into {sizes} padded by {pad}")
    if x.dtype != cp.float32:
        return exact.pool(x, largest, window, step, pad, apart, outs)
    out = type(x)((*x.shape[:-ndim], *outs), cp.float32)
    if out.size == 0:
        return out
    three = [(1,) * (3 - ndim) + lengths for lengths in (window, step, apart)]
    text = _text(largest, *three, (0,) * (3 - ndim) + pad, out.size >= 2**31)
    counts = [*(1,) * (3 - ndim), *sizes], [*(1,) * (3 - ndim), *outs]
    blocks = -(-out.size // _THREADS)
    launch(text, "pool", (blocks,), (_THREADS,), (contiguous(x), out, *counts[0], *counts[1], out.size))
    return out


@functools.cache
def _text(
    largest: bool,
    window: tuple[int, ...],
    step: tuple[int, ...],
    apart: tuple[int, ...],
    pad: tuple[int, ...],
    wide: bool,
) -> str:
    """A thread per output; the window's geometry is constant, so its loops unroll."""
    names = {"WINDOW": window, "STEP": step, "APART": apart, "PAD": pad}
    lines = [f"#define {name}_{axis} {n}" for name, lengths in names.items() for axis, n in enumerate(lengths)]
    start, fold = ("-__int_as_float(0x7f800000)", "(x > a || x != x) ? x : a") if largest else ("0.0f", "a + x")
    lines += [
        f"typedef unsigned {'long long' if wide else 'int'} Index;",
        f"#define START {start}",
        f"__device__ __forceinline__ float fold(float a, float x) {{ return {fold}; }}",
        f"#define FINISHED(a) {'(a)' if largest else f'((a) / {math.prod(window)}.0f)'}",
    ]
    return "\n".join(lines) + _KERNEL


_KERNEL = r"""
extern "C" __global__ void __launch_bounds__(256) pool(const float* __restrict__ data, float* __restrict__ out,
    int n0, int n1, int n2, Index m0, Index m1, Index m2, Index size) {
  Index at = blockIdx.x * (Index)256 + threadIdx.x;
  if (at >= size) return;
  Index rest = at;
  int o2 = rest % m2; rest /= m2;
  int o1 = rest % m1; rest /= m1;
  int o0 = rest % m0; rest /= m0;
  const float* plane = data + (size_t)rest * n0 * n1 * n2;
  int first0 = o0 * STEP_0 - PAD_0, first1 = o1 * STEP_1 - PAD_1, first2 = o2 * STEP_2 - PAD_2;
  float a = START;
  #pragma unroll
  for (int k0 = 0; k0 < WINDOW_0; ++k0) {
    int i0 = first0 + k0 * APART_0;
    if (i0 < 0 || i0 >= n0) continue;
    #pragma unroll
    for (int k1 = 0; k1 < WINDOW_1; ++k1) {
      int i1 = first1 + k1 * APART_1;
      if (i1 < 0 || i1 >= n1) continue;
      const float* row = plane + ((size_t)i0 * n1 + i1) * n2;
      #pragma unroll
      for (int k2 = 0; k2 < WINDOW_2; ++k2) {
        int i2 = first2 + k2 * APART_2;
        if (i2 >= 0 && i2 < n2) a = fold(a, row[i2]);
      }
    }
  }
  out[at] = FINISHED(a);
}
"""
