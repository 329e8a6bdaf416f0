"""The prepared form of a model file in the user's cache: parsing and dequantising take seconds, reading this does not.

One folder per content hash: `weights.safetensors` (float32), `tokenizer.json`, `model.json` (config, ids, template).
"""

import dataclasses
import hashlib
import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from cudal1_jax.policy import gguf_file, vocabulary
from cudal1_jax.policy.config import DecoderConfig

FORM = 1  # raise it when the layout of the folder or of the arrays changes


@dataclasses.dataclass(frozen=True)
class ModelFacts:
    """The small part of a prepared model, without its weights."""

    config: DecoderConfig
    bos: int
    eos: int
    pad: int
    chat_template: str


def sha256(path: str | Path) -> str:
    """Hex digest of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_root() -> Path:
    """$XDG_CACHE_HOME/cudal1-jax, or ~/.cache/cudal1-jax."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cudal1-jax"


def prepare(path: str | Path, digest: str) -> Path:
    """The folder with the prepared form of `path`, whose content has this digest; made on first use.

    Made beside its place and renamed, so that an interrupted or concurrent call leaves no half folder. OSError (a full
    disk, no permission) names the folder and the variable that moves it.
    """
    folder = cache_root() / f"{digest[:16]}-{FORM}"
    if (folder / "model.json").is_file():
        return folder
    contents = gguf_file.read(path)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
        try:
            _write(building, contents)
            os.rename(building, folder)
        except OSError:
            shutil.rmtree(building, ignore_errors=True)
            if not (folder / "model.json").is_file():  # otherwise another process was first
                raise
    except OSError as error:
        needed_mb = sum(array.nbytes for array in contents.params.values()) / 1e6
        raise OSError(
            error.errno,
            f"cannot keep the prepared model in {folder.parent} ({error.strerror}): {needed_mb:.0f} MB are needed; "
            "free some space or set XDG_CACHE_HOME to a folder with room",
        ) from error
    return folder


def facts(folder: Path) -> ModelFacts:
    """Config, token ids and chat template of a prepared model."""
    record = json.loads((folder / "model.json").read_text())
    return ModelFacts(config=DecoderConfig(**record.pop("config")), **record)


def weights(folder: Path) -> dict[str, np.ndarray] | None:
    """The prepared arrays, or None after removing a folder that cannot be read: prepare it again."""
    try:
        return load_file(folder / "weights.safetensors")
    except (OSError, SafetensorError) as error:
        logging.warning("the prepared model in %s is damaged (%s); making it anew", folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _write(folder: Path, contents: gguf_file.GgufFile) -> None:
    words = contents.vocabulary
    save_file(contents.params, folder / "weights.safetensors")
    vocabulary.build(words).save(str(folder / "tokenizer.json"))
    record = ModelFacts(contents.config, words.bos, words.eos, words.pad, words.chat_template)
    (folder / "model.json").write_text(json.dumps(dataclasses.asdict(record), indent=2))
