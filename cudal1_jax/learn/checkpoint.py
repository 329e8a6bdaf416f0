"""Checkpoints of a training run, through Orbax: all arrays bit for bit, and plain JSON beside them.

They are written while training goes on. A checkpoint appears whole or not at all (it is written under another name and
renamed), carries a digest of its arrays, and is checked against it when it is read: a damaged one is set aside with a
warning, and the one before it is used.
"""

import contextlib
import dataclasses
import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jax
import numpy as np
import orbax.checkpoint as ocp

ARRAYS, META = "arrays", "meta"
SPARE_BYTES = 4 << 20  # room for Orbax's own files, beside the arrays


class CheckpointError(OSError):
    """A checkpoint cannot be written or read; the text says what to do, and no earlier checkpoint is touched."""


@dataclasses.dataclass(frozen=True)
class Restored:
    """A checkpoint that was read and found whole."""

    step: int
    state: Any  # of the template's structure, dtypes and shardings
    meta: dict[str, Any]  # what `save` was given: data iterator state, position in the store ...


class Checkpointer:
    """The checkpoints of one run in one folder, the newest `keep` of them; a context manager.

    `save` copies the arrays and leaves the writing to a thread of Orbax; one checkpoint is written at a time, and
    leaving the context waits for the last. A run that is killed meanwhile has the one before.
    """

    def __init__(self, directory: str | Path, *, keep: int = 2):
        """Open or make the folder. What a killed run left half-written is removed."""
        self._directory = Path(directory).absolute()
        self._directory.mkdir(parents=True, exist_ok=True)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep, cleanup_tmp_directories=True, enable_async_checkpointing=True
        )
        self._manager = ocp.CheckpointManager(self._directory, options=options)
        self._writing: int | None = None  # step of the checkpoint that is being written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what is being written. CheckpointError: it could not be."""
        try:
            self.wait()
        finally:
            self._manager.close()

    def wait(self) -> None:
        """Return when the last `save` is on the disk. CheckpointError: it could not be written."""
        if self._writing is not None:
            with self._advice(self._writing):
                self._writing = None
                self._manager.wait_until_finished()

    def steps(self) -> list[int]:
        """Steps that have a checkpoint, oldest first; the one that is being written is waited for."""
        self.wait()
        return sorted(self._manager.all_steps())

    def save(self, step: int, state: Any, meta: Mapping[str, Any] | None = None) -> None:
        """Begin to write any pytree of arrays (typed keys included) and a JSON object; the arrays may be donated then.

        CheckpointError: there is no room, or this one or the one before cannot be written.
        """
        self.wait()
        arrays = {name: np.array(leaf) for name, leaf in _named_arrays(state).items()}  # copies: the state goes on
        record = {"digest": _digest(arrays), "form": _form(arrays), "meta": dict(meta or {})}
        json.dumps(record)  # a TypeError here names the caller's mistake, before anything is written
        self._check_room(step, sum(array.nbytes for array in arrays.values()))
        with self._advice(step):
            items = ocp.args.Composite(arrays=ocp.args.StandardSave(arrays), meta=ocp.args.JsonSave(record))
            self._manager.save(step, args=items, force=True)
        self._writing = step

    def restore(self, template: Any) -> Restored | None:
        """The newest whole checkpoint in the structure of `template`, or None where there is none yet.

        Template leaves are arrays, or `jax.ShapeDtypeStruct`s with a sharding: the arrays come as those lie, on
        another mesh than they were saved from too, and real numbers in their dtype. A damaged checkpoint is renamed to
        `damaged-<step>` with a warning. CheckpointError: it holds other arrays than the template asks for (another
        model, rank or optimizer), or every checkpoint is damaged.
        """
        names = _named_arrays(template)
        steps = self.steps()
        for step in reversed(steps):
            try:
                arrays, meta = self._read(step, names)
            except _Damaged as error:
                self._set_aside(step, error)
            else:
                return Restored(step, _rebuilt(template, arrays), meta)
        if steps:
            raise CheckpointError(
                f"all checkpoints in {self._directory} are damaged: put back a copy, or begin again with --fresh"
            )
        return None

    def restore_or(self, state: Any) -> tuple[int, Any]:
        """(step, state) of the newest whole checkpoint, or (0, the given state)."""
        found = self.restore(state)
        return (0, state) if found is None else (found.step, found.state)

    def _read(self, step: int, names: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        try:
            record = self._manager.restore(step, args=ocp.args.Composite(meta=ocp.args.JsonRestore()))[META]
            digest, form, meta = record["digest"], record["form"], record["meta"]
        except Exception as error:  # damage has no one exception: missing file, bad JSON, bad archive ...
            raise _Damaged(_first_line(error)) from error
        _check_form(self._directory / str(step), seen=form, expected=_form(names))
        try:
            wanted = {name: _as_saved(text) for name, text in form.items()}
            items = ocp.args.Composite(arrays=ocp.args.StandardRestore(wanted))
            arrays = {name: np.asarray(leaf) for name, leaf in self._manager.restore(step, args=items)[ARRAYS].items()}
        except Exception as error:
            raise _Damaged(_first_line(error)) from error
        if _digest(arrays) != digest:
            raise _Damaged("its arrays differ from what was saved")
        return arrays, meta

    @contextlib.contextmanager
    def _advice(self, step: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Orbax and TensorStore raise many kinds for one cause: it could not be written
            raise CheckpointError(
                f"checkpoint of step {step} could not be written to {self._directory} ({_first_line(error)}); "
                f"{self._earlier()}: mend the disk, then give the same command again"
            ) from error

    def _set_aside(self, step: int, reason: Exception) -> None:
        path = self._directory / str(step)
        aside = self._directory / f"damaged-{step}"
        warnings.warn(f"checkpoint {path} is damaged ({reason}); set aside as {aside.name}", stacklevel=3)
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        self._manager.reload()

    def _check_room(self, step: int, needed_bytes: int) -> None:
        needed_bytes += SPARE_BYTES
        free_bytes = shutil.disk_usage(self._directory).free
        if free_bytes < needed_bytes:
            raise CheckpointError(
                f"checkpoint of step {step} needs {needed_bytes / 1e6:.0f} MB and {self._directory} has "
                f"{free_bytes / 1e6:.0f} MB free; {self._earlier()}: free some space, then give the same command again"
            )

    def _earlier(self) -> str:
        steps = [found for found in self._manager.all_steps() if (self._directory / str(found)).is_dir()]
        return f"that of step {steps[-1]} is kept" if steps else "there is no earlier one"


class _Damaged(Exception):
    """A checkpoint cannot be read, or is not what was saved."""


def _named_arrays(tree: Any) -> dict[str, jax.Array]:
    """Leaves by their path, typed keys as their raw data: Orbax restores those into any process."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): _raw(leaf) for path, leaf in leaves}


def _raw(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _rebuilt(template: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    def leaf(path: Any, like: Any) -> jax.Array:
        array = arrays[jax.tree_util.keystr(path, simple=True, separator="/")]
        if _is_key(like):
            return jax.random.wrap_key_data(jax.numpy.array(array), impl=jax.random.key_impl(like))
        return _placed(array.astype(like.dtype), like)

    return jax.tree_util.tree_map_with_path(leaf, template)


def _placed(array: np.ndarray, like: Any) -> jax.Array:
    if isinstance(like, jax.ShapeDtypeStruct) or len(like.sharding.device_set) > 1:
        return jax.device_put(array, like.sharding)
    return jax.numpy.array(array)  # not tied to a device, as what a run begins with


def _form(arrays: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{array.dtype}{list(array.shape)}" for name, array in sorted(arrays.items())}


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _as_saved(form: str) -> jax.ShapeDtypeStruct:
    """From "float32[2, 3]"."""
    dtype, _, shape = form.partition("[")
    return jax.ShapeDtypeStruct(json.loads("[" + shape), jax.numpy.dtype(dtype))


def _exchangeable(seen: str | None, expected: str | None) -> bool:
    """Whether an array of one form can stand for one of the other: equal, or real numbers of one shape."""
    if seen is None or expected is None or seen == expected:
        return seen == expected
    a, b = _as_saved(seen), _as_saved(expected)
    return a.shape == b.shape and all(jax.numpy.issubdtype(x.dtype, jax.numpy.floating) for x in (a, b))


def _check_form(path: Path, *, seen: Mapping[str, str], expected: Mapping[str, str]) -> None:
    names = sorted(seen.keys() | expected.keys())
    differing = [name for name in names if not _exchangeable(seen.get(name), expected.get(name))]
    if differing:
        name = differing[0]
        raise CheckpointError(
            f"checkpoint {path} belongs to another model, adapter or optimizer: {name} is {seen.get(name, 'absent')} "
            f"there and {expected.get(name, 'absent')} here ({len(differing)} arrays differ); give the config it began "
            "with, or begin again with --fresh"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
