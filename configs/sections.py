"""What the pages of the two sampling stages, self_supervised.py and crl.py, have in common; no page of its own.

Each function gives one section with its defaults, all of which are flags: `--config.judge.workers=4`.
"""

from ml_collections import ConfigDict

# What the shipped adapter was trained on (docs/corpus.md): of other families it writes next to nothing that is right.
FAMILIES = ("elementwise", "loss", "matmul", "reduction", "rowwise", "scan")


def policy() -> ConfigDict:
    """Who writes: the embedded SmolLM2-135M-Instruct and the adapter that stage 1 made."""
    section = ConfigDict()
    section.model = ""  # a GGUF file, or a folder as Hugging Face has them; "": the embedded one
    section.parameters = ""  # folder `model` of a run with learn.full, whose values replace the file's
    section.adapter = "shipped"  # or a PEFT folder, or "" for a new one of the rank and targets below
    section.rank = 16
    section.targets = ("q", "k", "v", "o", "gate", "up", "down")
    section.rollout_dtype = "float32"  # bfloat16 where the hardware has it: GPU, TPU, AVX-512 with bf16
    section.update_dtype = "float32"
    return section


def mesh() -> ConfigDict:
    """How the policy is divided over devices; all 1: one device. One may be -1: as many as there are (docs/mesh.md)."""
    section = ConfigDict()
    section.data = 1  # repeats the policy, divides the prompts of an iteration
    section.fsdp = 1  # divides both
    section.tensor = 1  # divides heads, inner widths and the vocabulary
    section.expert = 1  # divides the experts of a mixture
    return section


def rollout(*, prompt_tokens: int, temperature: float) -> ConfigDict:
    """How many completions of how many prompts, and how they are drawn."""
    section = ConfigDict()
    section.prompts = 1  # N
    section.group = 8  # G
    section.prompt_tokens = prompt_tokens
    section.prompt_bucket = 128  # prompts are padded to multiples of it, so that few shapes are compiled
    section.completion_tokens = 512
    section.slots = 32  # rows decoded together; where there are more, one takes the slot of another that ends
    section.int8 = False  # the layers' matrices in eight bits while decoding: docs/rollout.md
    section.temperature = temperature
    section.top_k = 0  # 0: all tokens
    section.top_p = 1.0
    section.min_p = 0.0
    return section


def judge() -> ConfigDict:
    """How programs are judged, and what one of them may take."""
    section = ConfigDict()
    section.mode = "quick"
    section.gpu_share = 0.8  # of a GPU's memory for judging; the learner beside it keeps to the rest
    section.workers = 2  # on cuda at most one for each GPU
    section.compilers = 0  # programs that each worker traces and compiles while its GPU is busy; 0: by the cores
    section.deadline_s = 120.0  # of one program, before its worker is replaced
    section.limits = ConfigDict()
    section.limits.source_bytes = 256_000
    section.limits.plan_steps = 65_536
    section.limits.library_steps = True  # False: programs of own kernels alone
    section.limits.trace_s = 10.0
    section.limits.compile_s = 30.0
    section.limits.kernel_s = 1.0  # a verdict takes some sixty runs; plain programs take 5 to 50 ms
    section.limits.memory_bytes = 0  # of a plan's buffers; 0: 1 GiB on cpu, 48 GiB on cuda
    section.limits.confinement = ("rlimits", "landlock", "seccomp")  # of what programs pass through: docs/isolation.md
    section.limits.gpu_confinement = ("rlimits", "landlock", "seccomp")  # leave out what a driver dislikes
    return section


def pool() -> ConfigDict:
    """Where programs are judged (docs/pools.md)."""
    section = ConfigDict()
    section.kind = "local"  # ray: actors on a cluster; remote: `python -m evaluator serve` on another host
    section.address = ""  # of ray: "" for the cluster that this machine belongs to; of remote: host:port
    section.key_file = ""  # of remote: what its --key-file names there; "" reads $CUDAL1_POOL_KEY
    section.cpus = 1  # of ray on cpu, for each worker
    return section


def update(*, prompt_bucket: int) -> ConfigDict:
    """One update per iteration. Lengths are rounded up to buckets, in tokens, so that few shapes are compiled."""
    section = ConfigDict()
    section.learning_rate = 1e-4
    section.weight_decay = 0.0
    section.clip_norm = 1.0
    section.full = False  # True: all parameters are trained, and not an adapter
    section.moment_dtype = "float32"  # of the optimizer; bfloat16 halves their memory
    section.aggregate = "token"  # token, sequence, constant
    section.micro_batches = 4  # parts of a group that are differentiated one after another
    section.prompt_bucket = prompt_bucket
    section.completion_bucket = 128  # of the completions of a micro-batch together: they are packed
    section.entropy_floor = 1e-3  # nats a token: a policy that has become this certain stops the run
    section.remat = "none"  # layer, dots: what the backward pass computes again, to save memory
    return section
