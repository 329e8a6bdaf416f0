"""The three stages in order: supervised fine-tuning, one self-supervised round, contrastive reinforcement learning.

    python -m cudal1_jax.corpus --out=data/corpus --measure          # once, for the first stage
    python -m cudal1_jax.main --config=configs/pipeline.py           # on one GPU
    python -m cudal1_jax.main --config=configs/pipeline.py:smoke     # a few small steps of each, on a CPU

Each stage has its own page and its own folder, runs/pipeline/<stage>/, and begins with the adapter of the one before.
A stage's values are flags too: `--config.contrastive.exemplars.policy=island`.

Device and expected results: those of the pages configs/sft.py, configs/self_supervised.py and configs/crl.py together.
"""

import runpy
from pathlib import Path

from ml_collections import ConfigDict


def get_config(words: str = "") -> ConfigDict:
    config = ConfigDict()
    config.stage = "pipeline"
    config.name = f"pipeline-{words}" if words else "pipeline"
    config.sft = _page("sft", words)
    config.self_supervised = _page("self_supervised", words)
    config.contrastive = _page("crl", words)
    return config


def _page(name: str, words: str) -> ConfigDict:
    return runpy.run_path(str(Path(__file__).with_name(f"{name}.py")))["get_config"](words)
