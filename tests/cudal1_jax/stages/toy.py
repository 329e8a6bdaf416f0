"""A stage small enough for tests: a policy of two layers whose every completion is a program, and a scripted evaluator.

Run as a program, `python toy.py FOLDER`, it is a process that tests can kill.
"""

import dataclasses
import hashlib
import random
import runpy
import sys
import unittest.mock
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
from ml_collections import ConfigDict

from cudal1_jax.contrastive import prompt
from cudal1_jax.policy import lora, parameters
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.report import machine
from cudal1_jax.report.run_directory import open_run
from cudal1_jax.report.summary import Summary
from cudal1_jax.stages import contrastive, self_supervised, setup
from cudal1_jax.stages.policy import Policy
from evaluator.judge.job import Job
from evaluator.judge.seeds import derive
from evaluator.program.extract import extract
from evaluator.program.identity import sha256
from evaluator.records import EVALUATOR_VERSION, Interval, Mode, Outcome, Rung, Verdict

WORDS = 64
END = 2


class ToyTokenizer:
    """Words are hashed to ids; any ids are decoded to a completion with one of eleven programs.

    A request has its last 100 words, so that all have one length and one compiled program serves them.
    """

    stop_ids = (END,)

    def encode(self, text: str) -> list[int]:
        return [3 + derive(0, word) % (WORDS - 3) for word in text.split()]

    def render_chat(self, user: str) -> list[int]:
        return self.encode(user)[-100:]

    def decode(self, ids: Sequence[int]) -> str:
        kind = sum(ids) % 11
        if kind == 0:
            return "no program here"
        return prompt.completion("slow", "fast", f"import cupy as cp\n\n\ndef forward(x):\n    return x + {kind}\n")


def policy(config: ConfigDict) -> Policy:
    """Random weights, the same every time."""
    shape = DecoderConfig(
        layers=2, width=32, mlp_width=64, heads=2, key_heads=1, head_size=16, vocabulary=WORDS, rope_theta=1e4,
        norm_epsilon=1e-5, context=4096, tied_embeddings=True,
    )  # fmt: skip
    params = parameters.init(jax.random.key(0), shape)
    adapter = lora.init(jax.random.key(1), shape, rank=2, targets=("q", "v"))
    return Policy(shape, params, params, ToyTokenizer(), adapter)


class ScriptedPool:
    """Verdicts derived from the program's hash (the derived clock), handed out in a different order every time."""

    def __init__(self) -> None:
        self.judged: list[tuple[str, str]] = []  # (task, sha256 of the program or completion), as measured
        self._waiting: list[Job] = []
        self._shuffle = random.SystemRandom().shuffle

    def submit(self, job: Job) -> None:
        self._waiting.append(job)

    def completed(self) -> Iterator[tuple[Job, Verdict]]:
        self._shuffle(self._waiting)
        while self._waiting:
            job = self._waiting.pop()
            result = verdict(job)
            self.judged.append((job.task.id, result.program_sha256 or sha256(job.text)))
            yield job, result


def verdict(job: Job) -> Verdict:
    """A function of task and program alone: three in four are right, between 0.5 and 2.5 times as fast."""
    try:
        text = extract(job.text) if job.completion else job.text
    except Exception:
        return _verdict(job, "", Outcome.NO_PROGRAM, None)
    draw = derive(0, job.task.id, text)
    right = draw % 4 > 0 or not job.completion
    return _verdict(job, sha256(text), Outcome.OK if right else Outcome.WRONG_VALUE, 0.5 + (draw >> 8) % 2000 / 1000)


def failed(job: Job) -> Verdict:
    """A fault of the evaluator."""
    return dataclasses.replace(_verdict(job, "", Outcome.EVALUATOR_ERROR, None), message="no compiler")


def _verdict(job: Job, digest: str, outcome: Outcome, speedup: float | None) -> Verdict:
    ok = outcome is Outcome.OK
    return Verdict(
        outcome=outcome,
        rung=None if ok else Rung.CORRECTNESS,
        message="",
        line=None,
        task=job.task.id,
        size=job.size,
        device="cpu",
        mode=Mode.QUICK,
        program_sha256=digest,
        evaluator_version=EVALUATOR_VERSION,
        seeds=(job.seed or 0,),
        errors=(),
        times={},
        speedups={"plain": Interval(speedup, speedup * 0.99, speedup * 1.01)} if ok and speedup else {},
        speedup=speedup if ok else None,
        own_kernel_share=None,
        peak_bytes=None,
        floor_us=None,
        compiler={},
        rung_ms={},
    )


def config(stage: str = "contrastive", **changes: object) -> ConfigDict:
    """The main job's page, shrunk to the toy."""
    path = Path(__file__).parents[3] / "configs" / "crl.py"
    page = runpy.run_path(str(path))["get_config"]()
    page.stage = stage
    page.iterations = 4
    page.tasks = "1_019,1_023"
    page.stop_after_s = 0.0
    page.rollout.group = 4
    page.rollout.prompt_tokens = 100
    page.rollout.completion_tokens = 8
    page.learn.micro_batches = 2
    page.learn.prompt_bucket = 128
    page.learn.completion_bucket = 8
    page.learn.learning_rate = 0.05
    page.learn.method = "reinforce"
    page.update(ConfigDict(changes))
    return page


def now() -> float:
    """A clock that stands still."""
    return 0.0


def run(folder: Path, page: ConfigDict, pool: ScriptedPool) -> Summary:
    """One invocation; while the clock stands still, every figure is a function of the config."""
    stage = contrastive.run if page.stage == "contrastive" else self_supervised.run
    with (
        unittest.mock.patch.object(setup, "kernels", return_value=kernels(folder.parent / "kernels")),
        unittest.mock.patch.object(machine, "peak_memory", return_value={}),
    ):
        return stage(page, open_run(folder, page.to_dict()), pool=pool, load_policy=policy, now=now, started_s=0.0)


def kernels(folder: Path) -> Path:
    """Two programs for each of two tasks."""
    for task in ("1_019", "1_023"):
        (folder / task).mkdir(parents=True, exist_ok=True)
        for name in ("plain", "wide"):
            (folder / task / f"{name}.py").write_text(f"import cupy as cp\n\n\ndef forward(x):\n    return {name}\n")
    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    """Digests of what a run leaves behind and that must not depend on how often it was killed."""
    import sqlite3

    connection = sqlite3.connect(folder / "store.sqlite")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
    found = {name: _digest(connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()) for name in tables}
    connection.close()
    for name in ("metrics.jsonl", "summary.json", "adapter/adapter_model.safetensors"):
        found[name] = _digest((folder / name).read_bytes().replace(str(folder).encode(), b""))
    return found


def _digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


if __name__ == "__main__":
    jax.config.update("jax_disable_most_optimizations", True)  # as in the tests that compare with it
    run(Path(sys.argv[1]), config(), ScriptedPool())
