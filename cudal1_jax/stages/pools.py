"""Where the programs of a run are judged: on this machine, on a Ray cluster, or by an evaluator on another host."""

import contextlib
from collections.abc import Iterator

from ml_collections import ConfigDict

from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import setup
from evaluator.workers import key_file
from evaluator.workers.local import LocalPool
from evaluator.workers.pool import Pool, PoolError
from evaluator.workers.ray_pool import RayPool
from evaluator.workers.remote import RemotePool

LOCAL, RAY, REMOTE = KINDS = ("local", "ray", "remote")


@contextlib.contextmanager
def pool(config: ConfigDict) -> Iterator[Pool]:
    """The pool of a config that was checked. RunError: what judges elsewhere is out of reach, or does not fit."""
    try:
        with contextlib.closing(_pool(config)) as made:
            yield made
    except PoolError as error:
        raise RunError(f"config.pool: {error}") from error


def _pool(config: ConfigDict) -> Pool:
    options, deadline_s = setup.judge_options(config), config.judge.deadline_s
    compilers = config.judge.compilers  # of a `remote` pool: what its server was started with
    if config.pool.kind == LOCAL:
        return LocalPool(setup.judging_workers(config), options, deadline_s, compilers=compilers)
    if config.pool.kind == RAY:
        address = config.pool.address or "auto"
        return RayPool(options, deadline_s, address=address, cpus=config.pool.cpus, compilers=compilers)
    return RemotePool(config.pool.address, key_file.load(config.pool.key_file), options, deadline_s)
