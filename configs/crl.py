"""Contrastive reinforcement learning of CUDA programs (stage 3 of CUDA-L1), the main job.

    python -m cudal1_jax.main --config=configs/crl.py                # or: make run
    python -m cudal1_jax.main --config=configs/crl.py:smoke          # one iteration of two samples of one task
    python -m cudal1_jax.main --config=configs/crl.py:grpo           # no exemplars
    python -m cudal1_jax.main --config=configs/crl.py:evolve         # exemplars, no weight update
    python -m cudal1_jax.main --config=configs/crl.py:vanilla        # neither
    python -m cudal1_jax.main --config=configs/crl.py --config.exemplars.policy=island    # or random, best
    python -m cudal1_jax.main --config=configs/crl.py:kb             # the benchmark's own sizes, on one GPU

Words after the colon can be joined: `:grpo,smoke`. Any value below, and of the sections in `sections.py`, is a flag:
`--config.rollout.temperature=0.9`.

Device: two CPU cores, 12 GB of memory; no GPU. Programs run on the CPU emulator of CUDA, so a speed-up here says
nothing of a GPU. Measured: 5 iterations of 8 programs in 8 minutes on a quiet machine, half of them right. `:kb` on one
H200: 10 s an iteration (docs/results.md).
"""

import runpy
from pathlib import Path

from ml_collections import ConfigDict

SECTIONS = runpy.run_path(str(Path(__file__).with_name("sections.py")))

MODES = ("vanilla", "evolve", "grpo")

# Where a program of a few hundred tokens can beat a reference that reads its inputs more than once, or gets near it.
KB_TASKS = "1_025,1_030,1_036,1_051,1_088,1_094,1_096,1_099,2_014"


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
    config.profile = ""  # folder for a trace of one iteration: the second of this call, since the first one compiles

    # What to work on: ids such as "1_019,1_023", or all of a level and some families whose plain program is short
    # enough for a prompt
    config.tasks = ""
    config.task_level = 1
    config.task_families = SECTIONS["FAMILIES"]
    config.task_plain_tokens = 450

    # Who writes
    config.policy = SECTIONS["policy"]()
    config.mesh = SECTIONS["mesh"]()

    # exemplars: which earlier programs a prompt shows
    config.exemplars = ConfigDict()
    config.exemplars.policy = "bucket"  # bucket, island, random, best, none
    config.exemplars.count = 2
    config.exemplars.bucket_width = 0.25  # ds, in units of the speed-up
    config.exemplars.temperature = 0.5  # tau
    config.exemplars.islands = 4

    # prompt and rollout: 0.9 is too hot for a policy this small when exemplars are shown (docs/log.md)
    config.rollout = SECTIONS["rollout"](prompt_tokens=1536, temperature=0.7)

    # evaluate
    config.judge = SECTIONS["judge"]()
    config.pool = SECTIONS["pool"]()

    # reward: (r - mu) / sigma, clipped; mu and sigma over the task's last right programs
    config.reward = ConfigDict()
    config.reward.window = 64
    config.reward.sigma_min = 1e-3
    config.reward.clip = 1.5

    # advantage and update (docs/learner.md). "" and 0.0: as the paper of the loss has it
    config.learn = SECTIONS["update"](prompt_bucket=256)
    config.learn.train = True
    config.learn.loss = "dapo"  # grpo, dr_grpo, dapo, gspo, ppo, reinforce
    config.learn.advantage = ""  # normalised, centred, leave_one_out, reward
    config.learn.aggregate = ""  # token, sequence, constant
    config.learn.clip_low = 0.0
    config.learn.clip_high = 0.0
    config.learn.epochs = 1  # updates on the samples of an iteration; clips act from the second on
    config.learn.mask_overlong = False  # True: completions cut at the token limit do not count
    config.learn.entropy_weight = 0.0
    config.learn.ppo = ConfigDict()
    config.learn.ppo.discount = 1.0
    config.learn.ppo.gae_decay = 1.0  # lambda
    config.learn.ppo.value_clip = 0.2
    config.learn.ppo.value_weight = 0.5
    config.learn.kl = "k3"  # k1, k2, k3
    config.learn.kl_weight = 0.02
    config.learn.importance_cap = 2.0  # truncated importance weight of trainer over sampler; 0: none

    for word in sorted(filter(None, words.split(",")), key=lambda word: word == "smoke"):  # which shrinks what there is
        _change(config, word)
    return config


def _change(config: ConfigDict, word: str) -> None:
    config.name = f"{config.name}-{word}"
    if word == "smoke":
        config.iterations = 1
        config.tasks = "1_026"
        config.rollout.group = 2
        config.learn.micro_batches = 1
    elif word == "kb":
        config.device = "cuda"
        config.size = "kb"
        config.iterations = 24
        config.stop_after_s = 0.0
        config.tasks = KB_TASKS
        config.policy.rollout_dtype = "bfloat16"
        config.policy.update_dtype = "bfloat16"
        config.learn.micro_batches = 1
        config.rollout.prompt_bucket = 1536  # one shape: on a GPU compiling takes longer than what padding costs
        config.learn.prompt_bucket = 1536
        config.learn.completion_bucket = 4096
    elif word in MODES:
        config.exemplars.policy = config.exemplars.policy if word == "evolve" else "none"
        config.learn.train = word == "grpo"
    else:
        raise ValueError(f"configs/crl.py has no variant {word!r}: choose from smoke, kb, {', '.join(MODES)}")
