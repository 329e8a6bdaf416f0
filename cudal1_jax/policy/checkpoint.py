"""Hugging Face model folders (config.json, safetensors in one file or many) to parameters on a mesh, and back.

Reading goes from the files' pages to each device's part of an array: a process never holds more than its devices' parts
of one parameter. Writing holds one file's tensors at a time.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, Sharding, SingleDeviceSharding
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cudal1_jax.policy import hf_config, hf_names, parameters, sharding
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params

CONFIG = "config.json"
ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
FILE_BYTES = 5_000_000_000  # the most of one written file, as transformers does it


def load(folder: str | Path, dtype: jnp.dtype, mesh: Mesh | None = None) -> tuple[DecoderConfig, Params]:
    """Config and parameters in `dtype`, divided over the mesh as `sharding` says, or on the first device.

    FileNotFoundError for a missing file; ValueError for what does not fit: an unsupported field of config.json, an
    absent tensor, one of another shape, or one that the config does not explain.
    """
    folder = Path(folder)
    config = load_config(folder)
    with contextlib.ExitStack() as stack:
        files = Tensors(folder, stack)
        _check_names(config, files)
        where: Mapping[str, Sharding]
        if mesh is None:
            where = dict.fromkeys(parameters.abstract(config), SingleDeviceSharding(jax.devices()[0]))
        else:
            where = sharding.of_parameters(config, mesh)
        return config, {
            name: _read(config, files, name, leaf, where[name])
            for name, leaf in parameters.abstract(config, dtype).items()
        }


def load_config(folder: str | Path) -> DecoderConfig:
    """The shape alone."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"no {CONFIG} in {folder}: a model folder holds it beside its safetensors files")
    try:
        return hf_config.read(json.loads(path.read_text()))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}): copy it anew") from error


class Tensors:
    """The tensors of a folder by name, whatever file they lie in; files stay open until `stack` closes."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._open: dict[str, Any] = {}
        index = folder / INDEX
        if index.is_file():
            self._file_of = json.loads(index.read_text())["weight_map"]
        elif (folder / ONE_FILE).is_file():
            self._file_of = dict.fromkeys(self._file(ONE_FILE).keys(), ONE_FILE)
        else:
            raise FileNotFoundError(f"neither {ONE_FILE} nor {INDEX} in {folder}")

    def names(self) -> set[str]:
        return set(self._file_of)

    def slice_of(self, name: str) -> Any:
        """Of safetensors: has `get_shape()`, and reads what it is indexed with."""
        return self._file(self._file_of[name]).get_slice(name)

    def _file(self, name: str) -> Any:
        if name not in self._open:
            path = self._folder / name
            if not path.is_file():
                raise FileNotFoundError(f"no {name} in {self._folder}, though its index names it: copy it as well")
            try:
                self._open[name] = self._stack.enter_context(safe_open(path, "numpy"))
            except SafetensorError as error:
                raise ValueError(f"{path} cannot be read ({error}): copy it anew") from error
        return self._open[name]


def _read(config: DecoderConfig, files: Tensors, name: str, leaf: jax.ShapeDtypeStruct, where: Sharding) -> jax.Array:
    """One of our arrays, each device's part read by itself."""
    leading = len(next(hf_names.rows(name, leaf.shape)))

    def part(index: Any) -> np.ndarray:  # a slice for each axis
        bounds = [range(size)[one] for size, one in zip(leaf.shape, index, strict=True)]
        out = np.empty([len(bound) for bound in bounds], leaf.dtype)
        inner = tuple(slice(bound.start, bound.stop) for bound in bounds[leading:])
        for place in np.ndindex(*out.shape[:leading]):
            row = tuple(bound[i] for bound, i in zip(bounds, place, strict=False))
            out[place] = _slice(config, files, name, row, leaf.shape[leading:], inner)
        return out

    return jax.make_array_from_callback(leaf.shape, where, part)


def _slice(
    config: DecoderConfig,
    files: Tensors,
    name: str,
    row: tuple[int, ...],
    shape: tuple[int, ...],
    inner: tuple[slice, ...],
) -> np.ndarray:
    """The part `inner` of our array's row, which has `shape`."""
    theirs = hf_names.stored(config, name, row)
    stored, flipped = files.slice_of(theirs), hf_names.transposed(name, len(shape))
    expected = shape[::-1] if flipped else shape
    if tuple(stored.get_shape()) != expected:
        raise ValueError(f"{theirs} has shape {tuple(stored.get_shape())}, {CONFIG} asks for {expected}")
    return stored[inner[::-1]].T if flipped else stored[inner]


def _expected_names(config: DecoderConfig) -> set[str]:
    return {
        hf_names.stored(config, name, row)
        for name, leaf in parameters.abstract(config).items()
        for row in hf_names.rows(name, leaf.shape)
    }


def _check_names(config: DecoderConfig, files: Tensors) -> None:
    expected, seen = _expected_names(config), files.names()
    if missing := sorted(expected - seen):
        raise ValueError(f"the files lack {missing[0]} ({len(missing)} of {len(expected)} tensors)")
    if extra := sorted(name for name in seen - expected if not _harmless(config, name)):
        raise ValueError(f"the files hold {extra[0]} and {len(extra) - 1} more that {CONFIG} does not explain")


def _harmless(config: DecoderConfig, name: str) -> bool:
    """What changes no logit: a tied table's second copy, frequencies, and layers that predict further tokens."""
    if name == hf_names.OUTSIDE["unembed"] and config.tied_embeddings:
        return True
    parts = name.split(".")
    beyond = parts[:2] == ["model", "layers"] and parts[2].isdigit() and int(parts[2]) >= config.layers
    return beyond or name.endswith("rotary_emb.inv_freq")


def save(
    folder: str | Path,
    config: DecoderConfig,
    params: Params,
    more_fields: Mapping[str, Any] | None = None,
    file_bytes: int = FILE_BYTES,
) -> None:
    """Writes a folder that transformers and `load` read, in the parameters' dtype.

    `more_fields` of config.json, such as `eos_token_id`. Every part of the arrays must lie on this process's devices.
    """
    parameters.check(config, params)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    fields = hf_config.write(config, str(params["embed"].dtype)) | dict(more_fields or {})
    (folder / CONFIG).write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")
    files = list(_divided(config, params, file_bytes))
    weight_map: dict[str, str] = {}
    total = 0
    for number, names in enumerate(files):
        file = ONE_FILE if len(files) == 1 else f"model-{number + 1:05}-of-{len(files):05}.safetensors"
        tensors = {theirs: _host_copy(params[name], name, row) for theirs, (name, row) in names.items()}
        save_file(tensors, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, file)
        total += sum(tensor.nbytes for tensor in tensors.values())
    if len(files) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def _divided(
    config: DecoderConfig, params: Params, file_bytes: int
) -> Iterator[dict[str, tuple[str, tuple[int, ...]]]]:
    """The tensors of each file: their name -> our name and row."""
    names: dict[str, tuple[str, tuple[int, ...]]] = {}
    used = 0
    for name, leaf in params.items():
        rows = list(hf_names.rows(name, leaf.shape))
        size = leaf.nbytes // len(rows)
        for row in rows:
            if names and used + size > file_bytes:
                yield names
                names, used = {}, 0
            names[hf_names.stored(config, name, row)] = (name, row)
            used += size
    yield names


def _host_copy(leaf: jax.Array, name: str, row: tuple[int, ...]) -> np.ndarray:
    part = np.asarray(leaf[row] if row else leaf)
    return np.ascontiguousarray(part.T if hf_names.transposed(name, part.ndim) else part)
