"""Contrastive reinforcement learning of CUDA programs (stage 3 of CUDA-L1), the main job.

    python -m cudal1_jax.main --config=configs/crl.py                # or: make run
    python -m cudal1_jax.main --config=configs/crl.py:smoke          # one iteration of two samples
    python -m cudal1_jax.main --config=configs/crl.py:grpo           # no exemplars
    python -m cudal1_jax.main --config=configs/crl.py:evolve         # exemplars, no weight update
    python -m cudal1_jax.main --config=configs/crl.py:vanilla        # neither
    python -m cudal1_jax.main --config=configs/crl.py --config.exemplars.policy=island    # or random, best

Words after the colon can be joined: `:grpo,smoke`. Any value below is a flag: `--config.rollout.temperature=0.9`.

Device: two CPU cores, 12 GB of memory; no GPU. Programs run on the CPU emulator of CUDA, so a speed-up here says
nothing of a GPU. Measured: 3 iterations of 8 programs before the limit of 9 minutes, 42 % right (docs/results.md).
"""

from ml_collections import ConfigDict

MODES = ("vanilla", "evolve", "grpo")


def get_config(words: str = "") -> ConfigDict:
    config = ConfigDict()
    config.stage = "contrastive"
    config.name = "crl"
    config.seed = 0
    config.device = "cpu"
    config.size = "cpu"

    # How long
    config.iterations = 5
    config.stop_after_s = 540.0  # no iteration begins that would end later; 0: no limit
    config.reserve_s = 10.0  # of it kept for the summary

    # What to work on: ids such as "1_019,1_023", or all of a level whose plain program is short enough for a prompt
    config.tasks = ""
    config.task_level = 1
    config.task_plain_tokens = 450

    # Who writes: the embedded SmolLM2-135M-Instruct and the adapter that stage 1 made
    config.policy = ConfigDict()
    config.policy.gguf = ""  # path of another GGUF file
    config.policy.adapter = "shipped"  # or a PEFT folder, or "" for a new one of the rank and targets below
    config.policy.rank = 16
    config.policy.targets = ("q", "k", "v", "o", "gate", "up", "down")
    config.policy.rollout_dtype = "float32"  # bfloat16 where the hardware has it: GPU, TPU, AVX-512 with bf16
    config.policy.update_dtype = "float32"

    # exemplars: which earlier programs a prompt shows
    config.exemplars = ConfigDict()
    config.exemplars.policy = "bucket"  # bucket, island, random, best, none
    config.exemplars.count = 2
    config.exemplars.bucket_width = 0.25  # ds, in units of the speed-up
    config.exemplars.temperature = 0.5  # tau
    config.exemplars.islands = 4

    # prompt and rollout
    config.rollout = ConfigDict()
    config.rollout.prompts = 1  # N
    config.rollout.group = 8  # G
    config.rollout.prompt_tokens = 1536
    config.rollout.completion_tokens = 512
    config.rollout.temperature = 0.7  # 0.9 is too hot for a policy this small when exemplars are shown (docs/log.md)
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

    # reward: (r - mu) / sigma, clipped; mu and sigma over the task's last right programs
    config.reward = ConfigDict()
    config.reward.window = 64
    config.reward.sigma_min = 1e-3
    config.reward.clip = 1.5

    # advantage and update: GRPO, one update per iteration
    config.learn = ConfigDict()
    config.learn.train = True
    config.learn.learning_rate = 1e-4
    config.learn.weight_decay = 0.0
    config.learn.clip_norm = 1.0
    config.learn.clip_low = 0.2
    config.learn.clip_high = 0.28
    config.learn.kl = "k3"  # k1, k2, k3
    config.learn.kl_weight = 0.02
    config.learn.aggregate = "token"  # token, sequence, constant
    config.learn.importance_cap = 2.0  # truncated importance weight of trainer over sampler
    config.learn.micro_batches = 4
    config.learn.prompt_bucket = 256  # tokens
    config.learn.completion_bucket = 128
    config.learn.remat = False

    for word in filter(None, words.split(",")):
        _change(config, word)
    return config


def _change(config: ConfigDict, word: str) -> None:
    config.name = f"{config.name}-{word}"
    if word == "smoke":
        config.iterations = 1
        config.rollout.group = 2
        config.learn.micro_batches = 1
    elif word in MODES:
        config.exemplars.policy = config.exemplars.policy if word == "evolve" else "none"
        config.learn.train = word == "grpo"
    else:
        raise ValueError(f"configs/crl.py has no variant {word!r}: choose from smoke, {', '.join(MODES)}")
