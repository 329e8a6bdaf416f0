"""The arrows exemplars, prompt and rollout: what an iteration asks, and what the policy answers."""

from collections.abc import Callable, Sequence

import numpy as np

from cudal1_jax.contrastive import exemplars, prompt
from cudal1_jax.contrastive.exemplars import Exemplar, Select
from cudal1_jax.contrastive.records import Prompt, Sample
from cudal1_jax.contrastive.store import Store
from cudal1_jax.policy.tokenizer import Tokenizer
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.rollout.sampler import Rollout
from cudal1_jax.stages.judging import Bench
from evaluator.judge.seeds import derive
from evaluator.tasks.task import Task


def choose_exemplars(bench: Bench, step: int, tasks: Sequence[str], select: Select, count: int) -> list[list[Exemplar]]:
    """For each prompt, `count` programs among those that this run has found right for the task before `step`."""
    judged = bench.store.judged(end_step=step)
    return [
        select(
            [e for e in exemplars.pool(judged, task) if prompt.can_show(e.program)],
            count,
            np.random.default_rng(derive(bench.seed, "exemplars", step, number)),
        )
        for number, task in enumerate(tasks)
    ]


def write_prompts(
    bench: Bench, tasks: Sequence[str], shown: Sequence[Sequence[Exemplar]], tokenizer: Tokenizer, limit: int
) -> list[Prompt]:
    """The requests of an iteration, each of at most `limit` tokens: exemplars that do not fit are left out."""
    return [
        fit_prompt(number, bench.tasks[task], bench.size, chosen, bench.device, tokenizer, limit)
        for number, (task, chosen) in enumerate(zip(tasks, shown, strict=True))
    ]


def fit_prompt(
    number: int, task: Task, size: str, chosen: Sequence[Exemplar], device: str, tokenizer: Tokenizer, limit: int
) -> Prompt:
    """One request; where it is too long, the longest exemplar is left out first. RunError: too long without any."""
    kept = sorted(chosen, key=lambda exemplar: len(tokenizer.encode(exemplar.program)))
    while True:
        text = prompt.render(task, size, kept, device)
        tokens = len(tokenizer.render_chat(text))
        if tokens <= limit:
            return Prompt(prompt=number, task=task.id, text=text, exemplars=tuple(e.sha256 for e in kept))
        if not kept:
            raise RunError(
                f"the request for task {task.id} has {tokens} tokens without any exemplar and the limit is {limit}:"
                " raise config.rollout.prompt_tokens, or leave the task out of config.tasks"
            )
        kept.pop()


def roll_out(
    prompts: Sequence[Prompt], tokenizer: Tokenizer, sample: Callable[[list[list[int]]], Rollout]
) -> list[Sample]:
    """Completions of every prompt, G each, in prompt order; `sample` maps prompts' ids to B = N * G rows."""
    rollout = sample([tokenizer.render_chat(p.text) for p in prompts])
    tokens, logprobs = np.asarray(rollout.tokens), np.asarray(rollout.logprobs)  # [B, T]
    lengths, finished = np.asarray(rollout.lengths), np.asarray(rollout.finished)  # [B]
    group = len(tokens) // len(prompts)
    return [
        Sample(
            sample=row,
            prompt=row // group,
            text=tokenizer.decode(tokens[row, : lengths[row]].tolist()),
            tokens=tokens[row, : lengths[row]].astype(np.int32),
            logprobs=logprobs[row, : lengths[row]].astype(np.float32),
            finished=bool(finished[row]),
        )
        for row in range(len(tokens))
    ]


def recorded(store: Store, step: int) -> tuple[list[Prompt], list[Sample]]:
    """The prompts and samples of an iteration that has been recorded."""
    found = store.rollout(step)
    if found is None:
        raise LookupError(f"iteration {step} has no samples in {store.path}")
    return found
