"""Contrastive reinforcement learning of Qwen2.5-Coder-7B-Instruct, learner and judge on one large GPU.

    python -m cudal1_jax.main --config=configs/qwen2_5_coder_7b.py --config.policy.model=FOLDER
    python -m cudal1_jax.main --config=configs/qwen2_5_coder_7b.py --config.policy.model=Qwen2.5-Coder-7B --dry_run

FOLDER: the published weights, as Hugging Face has them. All of level 1 and 2 that may be trained on (docs/tasks.md), at
the benchmark's sizes; the policy writes 16 programs for a task from 3 exemplars.

Device: one GPU of 141 GB, of which the judge has 45 %; a task that needs more is told before the run begins, and
`--config.tasks` names others. The learner takes 77 GB by the second command, whose CPU compiler widens bfloat16: 15 GB
of weights, 39 GB more in an update, 61 GB more while it samples. The run itself has not been made.
"""

import runpy
from pathlib import Path

from ml_collections import ConfigDict

CRL = runpy.run_path(str(Path(__file__).with_name("crl.py")))


def get_config(words: str = "") -> ConfigDict:
    config = CRL["get_config"](",".join(["kb", *filter(None, words.split(","))]))
    config.name = config.name.replace("crl-kb", "qwen2_5_coder_7b", 1)
    config.iterations = 1000
    config.tasks = ""
    config.task_level = 1
    config.task_families = (*config.task_families, "convolution", "pooling", "attention")
    config.task_plain_tokens = 1500

    config.policy.model = "models/Qwen2.5-Coder-7B-Instruct"
    config.policy.adapter = ""  # a new one
    config.policy.rank = 32

    config.exemplars.count = 3
    config.rollout.group = 16
    config.rollout.prompt_tokens = 6144
    config.rollout.completion_tokens = 2048
    config.rollout.temperature = 1.0

    config.judge.gpu_share = 0.45
    config.learn.learning_rate = 2e-5
    config.learn.micro_batches = 16  # one completion at a time
    config.learn.completion_bucket = 2048
    config.learn.remat = "layer"
    return config
