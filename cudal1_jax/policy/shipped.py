"""The adapter that this project's own first stage made, kept in the package beside this file."""

from pathlib import Path

import jax.numpy as jnp

from cudal1_jax.policy import lora
from cudal1_jax.policy.config import DecoderConfig

FOLDER = Path(__file__).parent / "adapter"


def available() -> bool:
    """Whether this copy of the package holds the adapter."""
    return (FOLDER / "adapter_config.json").is_file()


def load(config: DecoderConfig, dtype: jnp.dtype = jnp.float32) -> lora.Adapter:
    """The shipped adapter. FileNotFoundError with the cure where this copy has none."""
    if not available():
        raise FileNotFoundError(
            f"no adapter in {FOLDER}: make it with `python -m cudal1_jax.main --config=configs/sft.py`, "
            "or start from the base model by leaving the config's adapter empty"
        )
    return lora.load(FOLDER, config, dtype)
