"""Stage 2, one round of self-supervised learning: sample, judge, keep what is right, learn from it. Speed is ignored.

prompt -> rollout -> evaluate -> record -> success -> update -> checkpoint -> metrics

The reward is 1 for a right program and 0 for any other. With `learn.method = "reinforce"` the policy is updated after
each iteration by REINFORCE without a baseline, so only successes have a gradient; with "rejection" the policy that the
stage began with writes everything first, and then learns from the distinct successes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ml_collections import ConfigDict

from cudal1_jax.contrastive import exemplars, novelty
from cudal1_jax.contrastive.records import SEED_STEP, Judged, Prompt, Sample
from cudal1_jax.contrastive.reward import success
from cudal1_jax.contrastive.store import Store
from cudal1_jax.learn.checkpoint import Checkpointer
from cudal1_jax.report import trace
from cudal1_jax.report.iterations import IterationLines
from cudal1_jax.report.metrics import MetricsLog
from cudal1_jax.report.run_directory import RunDirectory, RunError
from cudal1_jax.report.summary import Summary
from cudal1_jax.stages import judging, learning, reporting, sampling, setup, workload
from cudal1_jax.stages.budget import Budget, Stopwatch
from cudal1_jax.stages.checks import REJECTION
from cudal1_jax.stages.judging import Bench, Pool
from cudal1_jax.stages.policy import Policy
from cudal1_jax.stages.setup import RollOut
from evaluator.records import Verdict

REJECTION_SHARE = 0.5  # of the wall-clock budget, for sampling before anything is learnt


def run(
    config: ConfigDict,
    directory: RunDirectory,
    *,
    pool: Pool,
    load_policy: Callable[[ConfigDict], Policy],
    now: Callable[[], float],
    started_s: float,
) -> Summary:
    """Begin the round of `config` in `directory`, or go on with it, and write adapter and summary.

    Arguments and errors as in `contrastive.run`.
    """
    with Store(directory.store) as store, Checkpointer(directory.checkpoints) as checkpoints:
        bench = setup.bench(config, store, pool)
        judging.record_seeds(bench, workload.seeds(list(bench.tasks), setup.kernels()))
        seed_jobs = judging.submit(bench, SEED_STEP)
        policy = load_policy(config)
        learn, state = setup.reinforce(config, policy)
        first, state = checkpoints.restore_or(state)
        roll_out = setup.roll_out(config, policy)
        judging.collect_seeds(bench, seed_jobs)
        startup_s = now() - started_s
        last = config.iterations
        if config.learn.method == REJECTION:
            budget = Budget(now, started_s, config.stop_after_s * REJECTION_SHARE, config.reserve_s)
            last = _sample_all(config, bench, policy, roll_out, budget)
        budget = Budget(now, started_s, config.stop_after_s, config.reserve_s)
        lines = IterationLines(config.iterations, novelty.corpus_streams(setup.kernels()))
        stop = None
        with MetricsLog(directory.metrics, store.metrics(first)) as log:
            for step in range(first, last):
                if stop is not None or not budget.allows_another():
                    break
                with trace.traced(config.profile, step == min(first + 1, last - 1)):
                    watch = Stopwatch(now)
                    prompts, samples, verdicts = _sampled(config, bench, policy, roll_out, state.trainable, step)
                    watch.lap("rollout_and_judge")
                    kept = keep(config.learn.method, verdicts, bench.store.judged(first_step=0, end_step=step))
                    state, learnt = learn(state, prompts, samples, kept)
                    watch.lap("update")
                row = reporting.metrics(step, prompts, samples, verdicts, kept) | learnt | watch.laps()
                row |= reporting.rates(row, samples, sampled=False, dtype=config.policy.update_dtype)
                row = reporting.recordable(row)
                store.record_metrics(step, row)
                checkpoints.save(step + 1, state)
                log.append(row)
                lines.tell(step, store.judged(end_step=step + 1), watch.total_s)
                budget.spent(watch.total_s)
                stop = learning.reason_to_stop(config, directory, step, learnt)
        checkpoints.wait()
        learning.save(directory, policy, state.trainable)
        if stop is not None:
            raise RunError(stop)
        return reporting.summarise(bench, directory, setup.kernels(), config.name, startup_s)


def keep(method: str, verdicts: Sequence[Verdict], earlier: Sequence[Judged] = ()) -> list[float]:
    """The weight of each sample's log-probability: 1 for a success, else 0.

    With rejection a program counts once: not where this iteration or the `earlier` ones of the round hold it already.
    """
    seen = {entry.verdict.program_sha256 for entry in earlier}
    weights = []
    for verdict in verdicts:
        repeated = method == REJECTION and verdict.program_sha256 in seen
        weights.append(0.0 if repeated else success(verdict))
        seen.add(verdict.program_sha256)
    return weights


def _sample_all(config: ConfigDict, bench: Bench, policy: Policy, roll_out: RollOut, budget: Budget) -> int:
    """Let the policy that the stage began with write everything; the number of iterations there was time for."""
    for step in range(config.iterations):
        if not budget.allows_another():
            return step
        watch = Stopwatch(budget.now)
        _sampled(config, bench, policy, roll_out, policy.adapter, step)
        budget.spent(watch.total_s)
    return config.iterations


def _sampled(
    config: ConfigDict, bench: Bench, policy: Policy, roll_out: RollOut, trainable: Any, step: int
) -> tuple[list[Prompt], list[Sample], list[Verdict]]:
    """An iteration's prompts, samples and verdicts; what is recorded already is not done again."""
    if bench.store.rollout(step) is None:
        tasks = bench.schedule[step]
        shown = sampling.choose_exemplars(bench, step, tasks, exemplars.none, 0)
        prompts = sampling.write_prompts(bench, tasks, shown, policy.tokenizer, config.rollout.prompt_tokens)
        bench.store.record_rollout(step, prompts, roll_out(trainable, step, prompts))
    prompts, samples = sampling.recorded(bench.store, step)
    judging.collect(bench, judging.submit(bench, step), "judging")
    judging.record_hacks(bench, step)
    return prompts, samples, judging.verdicts(bench, step)
