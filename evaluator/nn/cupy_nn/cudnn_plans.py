"""Convolutions through cuDNN's graph interface: one plan per geometry, chosen by its heuristics as PyTorch does."""

import dataclasses
import functools
import importlib
from typing import Any

import cupy as cp

Lengths = tuple[int, ...]

_ALIGNMENT = 16  # bytes, of what a plan is given
_MOST_PLANS = 256  # kept; a run of many shapes would otherwise keep them all

_IDS = (1, 2, 3)  # by which a plan knows x, weight and out


class NoPlan(ValueError):
    """cuDNN has no way to run a geometry."""


@dataclasses.dataclass(frozen=True)
class Geometry:
    """What a plan depends on; shapes are those of contiguous arrays, with one to three dimensions after the channel."""

    x: Lengths
    weight: Lengths
    out: Lengths
    stride: Lengths
    padding: Lengths
    dilation: Lengths
    transposed: bool


@dataclasses.dataclass(frozen=True)
class _Plan:
    graph: Any  # cudnn.pygraph, built
    workspace_bytes: int


def convolve(geometry: Geometry, x: cp.ndarray, weight: cp.ndarray, out: cp.ndarray) -> None:
    """Fills `out` on CuPy's current stream. TF32 is allowed, as PyTorch allows it in convolutions. May raise NoPlan."""
    if out.size == 0 or x.size == 0:  # of which cuDNN has no notion
        out.fill(0)
        return
    cudnn = _cudnn()
    device = cp.cuda.Device().id
    handle = _handle(device)
    plan = _plan(device, geometry)
    workspace = cp.empty(max(plan.workspace_bytes, 1), cp.uint8)
    cudnn.set_stream(handle=handle, stream=cp.cuda.get_current_stream().ptr)
    x, weight, target = _aligned(x), _aligned(weight), out if _is_aligned(out) else cp.empty_like(out)
    pointers = dict(zip(_IDS, (x.data.ptr, weight.data.ptr, target.data.ptr), strict=True))
    plan.graph.execute(pointers, workspace.data.ptr, handle=handle)
    if target is not out:
        out[...] = target


def _is_aligned(array: cp.ndarray) -> bool:
    return array.data.ptr % _ALIGNMENT == 0


def _aligned(array: cp.ndarray) -> cp.ndarray:
    """The array, or a copy where it begins at an address that cuDNN does not take."""
    return array if _is_aligned(array) else array.copy()


@functools.cache
def _cudnn() -> Any:
    """Python's side of cuDNN; loaded when the first convolution needs it."""
    try:
        return importlib.import_module("cudnn")
    except ImportError as error:
        raise ImportError(
            f"convolutions on a GPU need cuDNN 9 and nvidia-cudnn-frontend ({error}): install this package with its"
            " extra cuda12 or cuda13, the one of the driver"
        ) from error


@functools.cache
def _handle(device: int) -> Any:
    return _cudnn().create_handle()


@functools.lru_cache(maxsize=_MOST_PLANS)
def _plan(device: int, geometry: Geometry) -> _Plan:
    cudnn = _cudnn()
    number = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        io_data_type=number, intermediate_data_type=number, compute_data_type=number, handle=_handle(device)
    )
    shapes = [_at_least_2d(shape) for shape in (geometry.x, geometry.weight, geometry.out)]
    x, weight = (
        graph.tensor(name=name, dim=list(shape), stride=_contiguous(shape), data_type=number, uid=uid)
        for name, shape, uid in zip(("x", "weight"), shapes, _IDS, strict=False)
    )
    stride, dilation = ([1] * (2 - len(given)) + list(given) for given in (geometry.stride, geometry.dilation))
    padding = [0] * (2 - len(geometry.padding)) + list(geometry.padding)
    windows = {"padding": padding, "stride": stride, "dilation": dilation}
    if geometry.transposed:  # the gradient of a convolution by its input
        out = graph.conv_dgrad(loss=x, filter=weight, **windows)
    else:
        out = graph.conv_fprop(image=x, weight=weight, **windows)
    out.set_uid(_IDS[2])
    out.set_output(True)
    out.set_data_type(number)
    out.set_dim(list(shapes[2]))
    out.set_stride(_contiguous(shapes[2]))
    try:
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
    except cudnn.cudnnGraphNotSupportedError as error:
        raise NoPlan(f"cuDNN {cudnn.backend_version()} has no plan for {geometry}: {error}") from error
    return _Plan(graph, graph.get_workspace_size())


def _at_least_2d(shape: Lengths) -> Lengths:
    """One-dimensional convolutions as two-dimensional ones of height 1, as in PyTorch."""
    return shape if len(shape) > 3 else (*shape[:2], 1, *shape[2:])


def _contiguous(shape: Lengths) -> list[int]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return strides[::-1]
