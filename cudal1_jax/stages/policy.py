"""The policy that a stage trains: a frozen base model and the adapter that it begins with."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from safetensors import SafetensorError
from safetensors.flax import load_file, save_file

from cudal1_jax.policy import checkpoint, gguf, lora, parameters, prepared, sharding, shipped, sizes, tokenizer
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.lora import Adapter
from cudal1_jax.policy.parameters import Params
from cudal1_jax.policy.tokenizer import Tokenizer
from cudal1_jax.report import progress
from cudal1_jax.report.run_directory import RunError

SHIPPED = "shipped"
PARAMETERS = "parameters.safetensors"  # in the folder `model` of a run that trains all parameters, by our names


@dataclasses.dataclass(frozen=True)
class Policy:
    """Base parameters in the dtypes of the two uses, the tokenizer, and the adapter at the stage's beginning."""

    config: DecoderConfig
    params: Params  # in the update's dtype; frozen
    rollout_params: Params  # in the rollout's dtype; the adapter is merged into these before sampling
    tokenizer: Tokenizer
    adapter: Adapter  # float32; also the reference of the KL penalty
    base_model: str = gguf.BASE_MODEL  # written into adapters, for those who load them elsewhere


def load(
    *,
    model: str,
    parameters_folder: str = "",
    adapter: str,
    rank: int,
    targets: tuple[str, ...],
    seed: int,
    rollout_dtype: str,
    update_dtype: str,
    mesh: Mesh | None = None,
) -> Policy:
    """Read base and adapter. `adapter`: "shipped", a folder, or "" for a new one.

    `model`: a GGUF file, a Hugging Face folder, or "" for the embedded model. `parameters_folder`: what a run with
    `learn.full` left, in the place of the base's own; "": none. `mesh`: what the arrays are divided over.
    RunError, with the cure, where a file is missing or does not fit.
    """
    with missing_files("config.policy"), progress.Pace("loading", "MB").working(_megabytes(model)):
        config, params = _base(model, jnp.dtype(update_dtype), mesh)
        if parameters_folder:
            params = load_parameters(Path(parameters_folder), config, jnp.dtype(update_dtype))
        loaded = Policy(
            config=config,
            params=params,
            rollout_params=jax.tree.map(lambda x: x.astype(rollout_dtype), params),
            tokenizer=_tokenizer(model),
            adapter=_adapter(adapter, config, rank, targets, seed),
            base_model=(Path(model).name.removesuffix(".gguf") if model else gguf.BASE_MODEL),
        )
        return loaded if mesh is None else divided(loaded, mesh)


def load_shape(model: str) -> DecoderConfig:
    """The shape alone; `model` as in `load`, or a name of `sizes.SIZES`, which needs no files. RunError as `load`."""
    if model in sizes.SIZES and not Path(model).exists():
        return sizes.SIZES[model]
    with missing_files("config.policy.model"):
        if _is_folder(model):
            return checkpoint.load_config(model)
        return prepared.facts(gguf.locate(_path(model))).config


def divided(loaded: Policy, mesh: Mesh) -> Policy:
    """The policy with its arrays divided over a mesh."""
    return dataclasses.replace(
        loaded,
        params=sharding.place(loaded.config, loaded.params, mesh),
        rollout_params=sharding.place(loaded.config, loaded.rollout_params, mesh),
        adapter=sharding.place_adapter(loaded.config, loaded.adapter, mesh),
    )


def save_parameters(folder: Path, params: Params) -> None:
    """Write all parameters, as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(params, folder / PARAMETERS)


def load_parameters(folder: Path, config: DecoderConfig, dtype: jnp.dtype) -> Params:
    """What `save_parameters` wrote. FileNotFoundError, or ValueError where it is damaged or of another shape."""
    try:
        params = {name: leaf.astype(dtype) for name, leaf in load_file(folder / PARAMETERS).items()}
    except SafetensorError as error:
        raise ValueError(f"{folder / PARAMETERS} cannot be read ({error}): make or copy it anew") from error
    parameters.check(config, params)
    return params


def load_tokenizer(model: str) -> Tokenizer:
    """The tokenizer alone, which needs none of the weights. RunError as `load`."""
    with missing_files("config.policy.model"):
        return _tokenizer(model)


def _base(model: str, dtype: jnp.dtype, mesh: Mesh | None) -> tuple[DecoderConfig, Params]:
    return checkpoint.load(model, dtype, mesh) if _is_folder(model) else gguf.load(_path(model), dtype)


def _tokenizer(model: str) -> Tokenizer:
    return tokenizer.from_hugging_face(model) if _is_folder(model) else tokenizer.load(_path(model))


def _is_folder(model: str) -> bool:
    """Whether it is a Hugging Face folder, and no GGUF file."""
    return bool(model) and Path(model).is_dir()


def _adapter(source: str, config: DecoderConfig, rank: int, targets: tuple[str, ...], seed: int) -> Adapter:
    if source == SHIPPED:
        return shipped.load(config)
    if source:
        return lora.load(source, config)
    return lora.init(jax.random.key(seed), config, rank, targets)


def _megabytes(model: str) -> int:
    path = _path(model) or gguf.embedded_path()
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    return round(sum(file.stat().st_size for file in files) / 1e6)


def _path(model: str) -> Path | None:
    return Path(model) if model else None


@contextlib.contextmanager
def missing_files(key: str) -> Iterator[None]:
    """Turns the errors of a file that is absent or does not fit into a RunError that names the config's key."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        raise RunError(f"{key}: {error}") from error
