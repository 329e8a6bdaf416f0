"""Stage 2: one round of self-supervised learning, where the policy learns from what it wrote and the judge found right.

    python -m cudal1_jax.main --config=configs/self_supervised.py
    python -m cudal1_jax.main --config=configs/self_supervised.py:smoke
    python -m cudal1_jax.main --config=configs/self_supervised.py --config.learn.method=rejection

Any value below, and of the sections in `sections.py`, is a flag: `--config.rollout.group=4`.

Device: two CPU cores, 12 GB of memory; no GPU. Expected: 8 iterations of 8 programs in at most 9 minutes; it learns
from right programs alone. The adapter lies in runs/self_supervised/adapter.
"""

import runpy
from pathlib import Path

from ml_collections import ConfigDict

SECTIONS = runpy.run_path(str(Path(__file__).with_name("sections.py")))


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

    # prompt and rollout: no exemplars in this stage
    config.rollout = SECTIONS["rollout"](prompt_tokens=1024, temperature=1.0)

    # evaluate
    config.judge = SECTIONS["judge"]()
    config.pool = SECTIONS["pool"]()

    # update: reward 1 for a right program, else 0, no baseline
    config.learn = SECTIONS["update"](prompt_bucket=512)
    config.learn.method = "reinforce"  # or "rejection": sample everything first, then learn from distinct successes

    if words == "smoke":
        config.name = "self_supervised-smoke"
        config.iterations = 1
        config.tasks = "1_019"
        config.rollout.group = 2
        config.learn.micro_batches = 1
    elif words:
        raise ValueError(f"configs/self_supervised.py has no variant {words!r}: choose smoke")
    return config
