"""Stage 1: supervised fine-tuning of the embedded policy on the generated corpus; makes the adapter that is shipped.

    python -m cudal1_jax.corpus --out=data/corpus --measure          # once: see its --help
    python -m cudal1_jax.main --config=configs/sft.py                # on one GPU
    python -m cudal1_jax.main --config=configs/sft.py:smoke          # three small steps on a CPU

To ship the result: `--config.out=cudal1_jax/policy/adapter`. Any value below is a flag: `--config.data.passes=1`.

Device: one H200. Measured for the shipped adapter: 163,000 tokens a second with cuDNN's attention, 3,725 steps in 6.3
minutes, held-out loss 0.034 nats a token; see docs/results.md.
"""

from ml_collections import ConfigDict


def get_config(words: str = "") -> ConfigDict:
    config = ConfigDict()
    config.stage = "sft"
    config.name = "sft"
    config.seed = 0
    config.out = ""  # a folder that gets the adapter as well; the run's own is runs/<name>/adapter

    # Who learns: the embedded SmolLM2-135M-Instruct with a new adapter of 19.5 MB in bfloat16
    config.policy = ConfigDict()
    config.policy.model = ""  # a GGUF file, or a folder as Hugging Face has them; "": the embedded one
    config.policy.parameters = ""  # folder `model` of a run with learn.full, whose values replace the file's
    config.policy.adapter = ""  # or "shipped", or a PEFT folder, to go on from there
    config.policy.rank = 32
    config.policy.targets = ("q", "k", "v", "o", "gate", "up", "down")
    config.policy.update_dtype = "bfloat16"  # of products and frozen weights; the adapter itself is float32

    # corpus -> tokens -> packed rows
    config.data = ConfigDict()
    config.data.corpus = "data/corpus"
    config.data.held_out_share = 0.02  # of the chains
    config.data.row_tokens = 2048
    config.data.rows = 8  # a batch: 16,384 tokens; with 65,536 there are too few updates to learn from (docs/log.md)
    config.data.passes = 3

    # update
    config.micro_batches = 1
    config.objective = ConfigDict()
    config.objective.chunk = 8192  # tokens whose logits are held at a time
    config.objective.remat = "none"  # layer, dots: what the backward pass computes again, to save memory
    config.objective.fused_attention = True  # cuDNN's, on a GPU
    config.schedule = ConfigDict()
    config.schedule.peak = 1.5e-3
    config.schedule.warmup_steps = 40
    config.schedule.decay = "cosine"
    config.schedule.end_fraction = 0.1
    config.optimizer = ConfigDict()
    config.optimizer.b2 = 0.99
    config.optimizer.weight_decay = 0.0
    config.optimizer.clip_norm = 1.0

    # held-out loss, checkpoint
    config.evaluate_every = 300  # steps; a checkpoint takes about a second
    config.most_steps = 0  # 0: as many as the passes give
    config.patience = 3  # evaluations without a lower held-out loss before it stops

    if words == "smoke":
        config.name = "sft-smoke"
        config.policy.rank = 4
        config.policy.update_dtype = "float32"
        config.data.row_tokens = 640
        config.data.rows = 1
        config.data.held_out_share = 0.1
        config.schedule.warmup_steps = 1
        config.objective.chunk = 128
        config.objective.fused_attention = False
        config.evaluate_every = 1
        config.patience = 3
        config.most_steps = 3
    elif words:
        raise ValueError(f"configs/sft.py has no variant {words!r}: choose smoke")
    return config
