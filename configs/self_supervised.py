"""Stage 2: one round of self-supervised learning, where the policy learns from what it wrote and the judge found right.

    python -m cudal1_jax.main --config=configs/self_supervised.py
    python -m cudal1_jax.main --config=configs/self_supervised.py:smoke
    python -m cudal1_jax.main --config=configs/self_supervised.py --config.learn.method=rejection

Device: two CPU cores, 12 GB of memory; no GPU. Expected: 8 iterations of 8 programs in at most 9 minutes; it learns
from right programs alone. The adapter lies in runs/self_supervised/adapter.
"""

from ml_collections import ConfigDict


def get_config(words: str = "") -> ConfigDict:
    config = ConfigDict()
    config.stage = "self_supervised"
    config.name = "self_supervised"
    config.seed = 0
    config.device = "cpu"
    config.size = "cpu"

    # How long
    config.iterations = 8
    config.stop_after_s = 540.0  # no iteration begins that would end later; 0: no limit
    config.reserve_s = 10.0  # of it kept for the summary

    # What to work on: ids such as "1_019,1_023", or all of a level whose plain program is short enough for a prompt
    config.tasks = ""
    config.task_level = 1
    config.task_plain_tokens = 450

    # Who writes
    config.policy = ConfigDict()
    config.policy.gguf = ""  # "": the embedded SmolLM2-135M-Instruct
    config.policy.adapter = "shipped"  # or a PEFT folder, or "" for a new one of the rank and targets below
    config.policy.rank = 16
    config.policy.targets = ("q", "k", "v", "o", "gate", "up", "down")
    config.policy.rollout_dtype = "float32"  # bfloat16 where the hardware has it
    config.policy.update_dtype = "float32"

    # prompt and rollout: no exemplars in this stage
    config.rollout = ConfigDict()
    config.rollout.prompts = 1  # N
    config.rollout.group = 8  # G
    config.rollout.prompt_tokens = 1024
    config.rollout.completion_tokens = 512
    config.rollout.temperature = 1.0
    config.rollout.top_k = 0  # 0: all tokens
    config.rollout.top_p = 1.0
    config.rollout.min_p = 0.0

    # evaluate
    config.judge = ConfigDict()
    config.judge.mode = "quick"
    config.judge.workers = 2
    config.judge.deadline_s = 120.0  # of one program, before its worker is replaced
    config.judge.limits = ConfigDict()
    config.judge.limits.source_bytes = 256_000
    config.judge.limits.plan_steps = 65_536
    config.judge.limits.trace_s = 10.0
    config.judge.limits.compile_s = 30.0
    config.judge.limits.kernel_s = 1.0  # a verdict takes some sixty runs; plain programs take 5 to 50 ms
    config.judge.limits.memory_bytes = 4 << 30

    # update: reward 1 for a right program, else 0, no baseline
    config.learn = ConfigDict()
    config.learn.method = "reinforce"  # or "rejection": sample everything first, then learn from distinct successes
    config.learn.learning_rate = 1e-4
    config.learn.weight_decay = 0.0
    config.learn.clip_norm = 1.0
    config.learn.aggregate = "token"  # token, sequence, constant
    config.learn.micro_batches = 4
    config.learn.prompt_bucket = 512  # tokens
    config.learn.completion_bucket = 128
    config.learn.remat = False

    if words == "smoke":
        config.name = "self_supervised-smoke"
        config.iterations = 1
        config.tasks = "1_019"
        config.rollout.group = 2
        config.learn.micro_batches = 1
    elif words:
        raise ValueError(f"configs/self_supervised.py has no variant {words!r}: choose smoke")
    return config
