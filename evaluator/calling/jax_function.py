"""A verified program as a function for `jax.jit`: XLA calls it through its foreign function interface."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evaluator import _core
from evaluator.calling.arguments import Form, in_order
from evaluator.calling.emulated import EmulatedProgram
from evaluator.calling.preparation import Preparation, Prepared
from evaluator.calling.source import Source, find
from evaluator.records import Limits, Verdict
from evaluator.tasks.task import Task

_DEVICES = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda"}  # of JAX's backends
_PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}  # as XLA spells them


def jax_call(
    program: str | Path,
    *,
    task: str | Task | None = None,
    device: str | None = None,
    verdict: str | Path | Verdict | None = None,
    allow_unverified: bool = False,
    limits: Limits | None = None,
) -> Callable[..., Any]:
    """The program as a function of JAX arrays: the task's inputs, then its parameters, by position or by name.

    It can be called alone, under `jax.jit` and, one element after another, under `jax.vmap`; it has no derivative until
    `jax.custom_vjp` gives it one. The program is traced and compiled when JAX traces the function. `device`: "cpu" or
    "cuda", that of JAX's default backend if None. Raises what `source.find` raises; the function raises TypeError for
    missing or superfluous arrays, Unverified for shapes and dtypes that the verdict is not about, and ProgramFault for
    what a compiler finds. What goes wrong while it runs is an error of JAX's with the program's name and line.
    """
    chosen = device if device is not None else _default_device()
    source = find(program, task=task, device=chosen, verdict=verdict, allow_unverified=allow_unverified)
    target = _registered(chosen)
    preparation = Preparation(source, limits)
    kept = functools.cache(functools.partial(_kept, preparation))

    def call(*arrays: Any, **named: Any) -> Any:
        given = [jnp.asarray(array) for array in in_order(source, arrays, named)]
        prepared = preparation.of(tuple((array.shape, array.dtype) for array in given))
        forms = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in _results(source, prepared)]
        function = jax.ffi.ffi_call(target, forms, vmap_method="sequential")
        found = function(*given, program=kept(prepared))[: len(prepared.results)]
        return found[0] if len(found) == 1 else tuple(found)

    call.__name__ = call.__qualname__ = f"task_{source.task.id}"
    call.__doc__ = f"{source.name} on {chosen}: {', '.join(source.names)}"
    return call


def _default_device() -> str:
    backend = jax.default_backend()
    if backend not in _DEVICES:
        raise ValueError(f"JAX's default backend is {backend!r}, which runs no CUDA: pass device='cpu' or 'cuda'")
    return _DEVICES[backend]


@functools.cache
def _registered(device: str) -> str:
    """Name of the target that runs programs of a device; on the other platform it only says what is wrong."""
    target, handlers = f"cudal1_{device}", _core.xla_handlers()
    for name, platform in _PLATFORMS.items():
        handler = handlers[device] if name == device else handlers["refusing"]
        jax.ffi.register_ffi_target(target, handler, platform=platform)
    return target


def _kept(preparation: Preparation, prepared: Prepared) -> str:
    """The key by which XLA finds a program, which it may call from now on."""
    key = preparation.key_of(prepared)
    if isinstance(prepared, EmulatedProgram):
        _core.keep_host_program(key, prepared.run, prepared.bytes)
    else:
        _core.keep_cuda_program(key, prepared.core)
    return key


def _results(source: Source, prepared: Prepared) -> list[Form]:
    """Outputs, then scratch memory: a result that nobody reads, so that XLA plans it and no two calls share it."""
    for _, dtype in prepared.results:
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise TypeError(f"{source.name} returns {dtype}: set jax_enable_x64, or JAX would take it for 32 bits")
    if isinstance(prepared, EmulatedProgram) or not prepared.placement.scratch_bytes:
        return list(prepared.results)
    return [*prepared.results, ((prepared.placement.scratch_bytes,), np.dtype(np.uint8))]
