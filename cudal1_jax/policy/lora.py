"""Low-rank adapters: x @ w + (x @ a) @ b * scale, one pair of matrices per target, stacked over layers."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.flax import load_file, save_file

from cudal1_jax.policy import parameters
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params

# our names of the linear maps -> the module paths that PEFT and transformers give them
TARGETS = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
OF_LATENT = {  # latent attention has these in the place of q, k and v
    "q_down": "self_attn.q_a_proj",
    "q_up": "self_attn.q_b_proj",
    "kv_down": "self_attn.kv_a_proj_with_mqa",
    "kv_up": "self_attn.kv_b_proj",
}
PATHS = TARGETS | OF_LATENT


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Adapter:
    """A pytree whose leaves are the trained matrices, so gradients and optimizers apply to it as it is."""

    weights: dict[str, dict[str, jax.Array]]  # target -> {"a": [L, in, r], "b": [L, r, out]}
    scale: float = dataclasses.field(metadata={"static": True})  # alpha / r

    @property
    def rank(self) -> int:
        return next(iter(self.weights.values()))["a"].shape[-1]


def init(
    key: jax.Array,
    config: DecoderConfig,
    rank: int,
    targets: Sequence[str] = tuple(TARGETS),
    alpha: float | None = None,
    dtype: jnp.dtype = jnp.float32,
) -> Adapter:
    """An adapter that changes nothing yet: a uniform in +-1/sqrt(in), b zero. alpha defaults to the rank (scale 1).

    ValueError for targets that the model lacks: latent attention has those of `OF_LATENT`, and experts have none.
    """
    _check_targets(config, targets)
    if rank < 1:
        raise ValueError(f"rank must be at least 1, not {rank}")
    weights = {}
    for number, target in enumerate(sorted(targets)):
        layers, inputs, outputs = parameters.abstract(config)[target].shape
        bound = 1 / math.sqrt(inputs)
        draw = jax.random.uniform(jax.random.fold_in(key, number), (layers, inputs, rank), dtype, -bound, bound)
        weights[target] = {"a": draw, "b": jnp.zeros((layers, rank, outputs), dtype)}
    return Adapter(weights, (rank if alpha is None else alpha) / rank)


def merge(params: Params, adapter: Adapter) -> Params:
    """Parameters with the adapter added into the weights, for rollouts. New arrays for the targets, the rest shared."""
    merged = dict(params)
    for target, pair in adapter.weights.items():
        delta = jnp.einsum("lir,lro->lio", pair["a"], pair["b"], preferred_element_type=jnp.float32) * adapter.scale
        merged[target] = (params[target].astype(jnp.float32) + delta).astype(params[target].dtype)
    return merged


def save(folder: str | Path, adapter: Adapter, base_model: str) -> None:
    """Writes adapter_model.safetensors (bfloat16) and adapter_config.json as PEFT reads them."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for target, pair in adapter.weights.items():
        for layer in range(pair["a"].shape[0]):
            tensors[_name(layer, target, "A")] = pair["a"][layer].T.astype(jnp.bfloat16)
            tensors[_name(layer, target, "B")] = pair["b"][layer].T.astype(jnp.bfloat16)
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "r": adapter.rank,
        "lora_alpha": adapter.scale * adapter.rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": sorted(PATHS[target].rpartition(".")[2] for target in adapter.weights),
    }
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def load(folder: str | Path, config: DecoderConfig, dtype: jnp.dtype = jnp.float32) -> Adapter:
    """Reads what `save` or PEFT wrote. FileNotFoundError where a file is missing, ValueError where it does not fit."""
    folder = Path(folder)
    settings_path, weights_path = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    for path in (settings_path, weights_path):
        if not path.is_file():
            raise FileNotFoundError(f"no {path.name} in {folder}: a LoRA adapter folder holds both files")
    try:
        settings, tensors = json.loads(settings_path.read_text()), load_file(weights_path)
    except (json.JSONDecodeError, SafetensorError) as error:
        raise ValueError(f"the adapter in {folder} cannot be read ({error}): make or copy it anew") from error
    paths = {path.rpartition(".")[2]: target for target, path in PATHS.items()}
    unknown = set(settings["target_modules"]) - set(paths)
    if unknown:
        raise ValueError(f"{settings_path} targets {sorted(unknown)}; known are {sorted(paths)}")
    targets = sorted(paths[module] for module in settings["target_modules"])
    _check_targets(config, targets)
    shapes, weights = {name: leaf.shape for name, leaf in parameters.abstract(config).items()}, {}
    for target in targets:
        stacked = {side: _stack(tensors, shapes[target][0], target, side, weights_path) for side in "AB"}
        weights[target] = {"a": jnp.asarray(stacked["A"], dtype), "b": jnp.asarray(stacked["B"], dtype)}
    adapter = Adapter(weights, settings["lora_alpha"] / settings["r"])
    _check_shapes(config, adapter, weights_path)
    return adapter


def _name(layer: int, target: str, side: str) -> str:
    return f"base_model.model.model.layers.{layer}.{PATHS[target]}.lora_{side}.weight"


def _stack(tensors: dict, layers: int, target: str, side: str, path: Path) -> np.ndarray:
    names = [_name(layer, target, side) for layer in range(layers)]
    missing = [name for name in names if name not in tensors]
    if missing:
        raise ValueError(f"{path} lacks {missing[0]} ({len(missing)} of {layers} layers): it belongs to another model")
    return np.stack([np.asarray(tensors[name].astype(jnp.float32)).T for name in names])


def _check_targets(config: DecoderConfig, targets: Sequence[str]) -> None:
    known = [target for target in PATHS if target in parameters.abstract(config)]
    unknown = [target for target in targets if target not in known]
    if unknown or not targets:
        raise ValueError(f"unknown LoRA targets {unknown or '(none given)'}; choose from {', '.join(known)}")


def _check_shapes(config: DecoderConfig, adapter: Adapter, path: Path) -> None:
    expected = parameters.abstract(config)
    for target, pair in adapter.weights.items():
        _, inputs, outputs = expected[target].shape
        if pair["a"].shape[1] != inputs or pair["b"].shape[2] != outputs:
            seen = (pair["a"].shape[1], pair["b"].shape[2])
            raise ValueError(f"{path}: {target} maps {seen[0]} to {seen[1]} numbers, the model {inputs} to {outputs}")
