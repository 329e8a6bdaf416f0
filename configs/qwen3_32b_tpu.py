"""Contrastive reinforcement learning of Qwen3-32B: the learner on 64 TPU chips, the judge on GPUs of another host.

    python -m evaluator serve --device=cuda --address=0.0.0.0:7000 --key-file=KEY      # on the GPU host, docs/pools.md
    python -m cudal1_jax.main --config=configs/qwen3_32b_tpu.py --config.policy.model=FOLDER \\
        --config.pool.address=HOST:7000 --config.pool.key_file=KEY
    python -m cudal1_jax.main --config=configs/qwen3_32b_tpu.py --config.policy.model=Qwen3-32B \\
        --dry_run --topology=v5e:8x8 --memory_gb=16

FOLDER: the published weights, as Hugging Face has them. Sixteen tasks an iteration, sixteen programs each.

Device: 64 chips of TPU v5e (16 GB each) that one process sees, and GPUs behind `evaluator serve`. The last command says
12.1 GB of each chip: 1.7 at all times, 10.4 more in an update, 5.1 more while it samples. The run itself has not been
made.
"""

import runpy
from pathlib import Path

from ml_collections import ConfigDict

PAGE = runpy.run_path(str(Path(__file__).with_name("qwen2_5_coder_7b.py")))


def get_config(words: str = "") -> ConfigDict:
    config = PAGE["get_config"](words)
    config.name = config.name.replace("qwen2_5_coder_7b", "qwen3_32b_tpu", 1)

    config.policy.model = "models/Qwen3-32B"
    config.mesh.fsdp = 16
    config.mesh.tensor = 4

    config.rollout.prompts = 16
    config.rollout.slots = 256
    config.learn.micro_batches = 16
    config.pool.kind = "remote"
    return config
