"""Stage 3, contrastive reinforcement learning: the policy is shown its own programs with their speed, and learns.

exemplars -> prompt -> rollout -> evaluate -> record -> reward -> advantage -> update -> checkpoint -> metrics

An iteration's prompts and samples are in the store before any is judged, each verdict as soon as it arrives, and the
learner's state in a checkpoint at the end: so a run that was killed anywhere goes on with what it had. Without
exemplars this is GRPO, without updates an evolutionary search, with neither plain sampling: see `configs/crl.py`.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from cudal1_jax.contrastive import novelty
from cudal1_jax.contrastive.records import SEED_STEP
from cudal1_jax.contrastive.store import Store
from cudal1_jax.learn.checkpoint import Checkpointer
from cudal1_jax.report import trace
from cudal1_jax.report.iterations import IterationLines
from cudal1_jax.report.metrics import MetricsLog
from cudal1_jax.report.run_directory import RunDirectory, RunError
from cudal1_jax.report.summary import Summary
from cudal1_jax.stages import judging, learning, objective, reporting, sampling, setup, workload
from cudal1_jax.stages.budget import Budget, Stopwatch
from cudal1_jax.stages.judging import Pool
from cudal1_jax.stages.policy import Policy

ARROWS = ("exemplars", "prompt", "rollout", "judge", "reward", "update")


def run(
    config: ConfigDict,
    directory: RunDirectory,
    *,
    pool: Pool,
    load_policy: Callable[[ConfigDict], Policy],
    now: Callable[[], float],
    started_s: float,
) -> Summary:
    """Begin the iterations of `config` in `directory`, or go on with them, and write the summary.

    `pool` judges; `now` is a monotonic clock in seconds, on which the wall-clock budget began at `started_s`.
    RunError, StoreError, OSError: the run cannot go on; the text says what to do, and nothing recorded is lost.
    """
    with Store(directory.store) as store, Checkpointer(directory.checkpoints) as checkpoints:
        bench = setup.bench(config, store, pool)
        judging.record_seeds(bench, workload.seeds(list(bench.tasks), setup.kernels()))
        seed_jobs = judging.submit(bench, SEED_STEP)  # judged by the pool's processes while the model loads here
        policy = load_policy(config)
        learn, state = setup.learner(config, policy)
        advantage_of = objective.advantage_of(config)
        first, state = checkpoints.restore_or(state)
        select, roll_out = setup.select(config), setup.roll_out(config, policy)
        judging.collect_seeds(bench, seed_jobs)
        budget = Budget(now, started_s, config.stop_after_s, config.reserve_s)
        startup_s = now() - started_s
        lines = IterationLines(config.iterations, novelty.corpus_streams(setup.kernels()))
        stop = None
        with MetricsLog(directory.metrics, store.metrics(first)) as log:
            for step in range(first, config.iterations):
                if stop is not None or not budget.allows_another():
                    break
                with trace.traced(config.profile, step == min(first + 1, config.iterations - 1)):
                    watch = Stopwatch(now, ARROWS)
                    fresh = store.rollout(step) is None
                    if fresh:
                        tasks = bench.schedule[step]
                        shown = sampling.choose_exemplars(bench, step, tasks, select, config.exemplars.count)
                        watch.lap("exemplars")
                        prompts = sampling.write_prompts(
                            bench, tasks, shown, policy.tokenizer, config.rollout.prompt_tokens
                        )
                        watch.lap("prompt")
                        store.record_rollout(step, prompts, roll_out(state.trainable, step, prompts))
                    prompts, samples = sampling.recorded(store, step)
                    watch.lap("rollout")
                    judging.collect(bench, judging.submit(bench, step), "judging")
                    judging.record_hacks(bench, step)
                    verdicts = judging.verdicts(bench, step)
                    watch.lap("judge")
                    rewards = learning.smoothed_rewards(bench, step, prompts, samples, verdicts, **config.reward)
                    advantages = learning.group_advantages(rewards, advantage_of)
                    watch.lap("reward")
                    state, learnt = learn(state, prompts, samples, advantages)
                    watch.lap("update")
                row = reporting.metrics(step, prompts, samples, verdicts, advantages) | learnt | watch.laps()
                row |= reporting.rates(row, samples, sampled=fresh, dtype=config.policy.update_dtype)
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
