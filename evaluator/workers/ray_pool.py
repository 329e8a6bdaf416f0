"""A pool of Ray actors on a cluster: one for each GPU, or for some CPUs. A node may go, never a result."""

import importlib.util
import socket
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

from evaluator.judge.child import Child
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.records import EVALUATOR_VERSION, VERDICT_SCHEMA
from evaluator.workers import capacity, judging_process
from evaluator.workers.answers import Answer, Ready
from evaluator.workers.dispatch import Dispatcher, JudgeOptions
from evaluator.workers.judging_process import MakeJudge
from evaluator.workers.pool import PoolError
from evaluator.workers.worker import Lost

_LOOK_AGAIN_S = 5.0  # how soon a node that has joined is used
_FRESH_S = 2.0  # an actor that answered so recently is taken to live
_PING_S = 10.0


class RayPool(Dispatcher):
    """An actor for each GPU of the cluster (device `cuda`), or for every `cpus` of its CPUs, as nodes come and go.

    `address`: of a running cluster as `ray.init` takes it ("auto" for the one that this machine belongs to), unused
    where this process has joined one. Every node needs this version of the evaluator. `compilers`: as of `LocalPool`,
    of each node's cores. `start_s`: how long a job may wait while no actor could take it. PoolError: no Ray, no cluster
    there, or a node with another version.
    """

    def __init__(
        self,
        judge_options: JudgeOptions | None = None,
        deadline_s: float = 300.0,
        *,
        address: str = "auto",
        cpus: int = 1,
        compilers: int = 0,
        make_judge: MakeJudge = Judge,
        start_s: float = 600.0,
    ):
        if cpus < 1:
            raise ValueError(f"seen {cpus} CPUs for each worker, expected at least 1")
        super().__init__(judge_options, deadline_s, patience_s=start_s, may_grow=True)
        self._ray = _ray()
        self._device = str(self._options.get("device", "cpu"))
        self._cpus, self._compilers, self._make_judge = cpus, compilers, make_judge
        self._seen, self._look_again_s = 1, 0.0  # workers that the cluster has room for, and when to look again
        self._joined = not self._ray.is_initialized()
        if self._joined:
            _join(self._ray, address)
        self._hire()

    def close(self) -> None:
        super().close()
        if self._joined and self._ray.is_initialized():
            self._ray.shutdown()

    def _size(self) -> int:
        if time.monotonic() >= self._look_again_s:
            resources = self._ray.cluster_resources()
            seen = resources.get("GPU", 0) if self._device == "cuda" else resources.get("CPU", 0) // self._cpus
            self._seen = max(1, int(seen))  # one that waits for its place asks a cluster that can grow to do so
            self._look_again_s = time.monotonic() + _LOOK_AGAIN_S
        return self._seen

    def _start(self, place: int) -> "_Actor":
        needs = {"num_gpus": 1, "num_cpus": 1} if self._device == "cuda" else {"num_cpus": self._cpus}
        return _Actor(self._ray, needs, (self._make_judge, self._device, self._compilers))

    def _wait(self, workers: Sequence[Any], timeout_s: float | None) -> Collection[Any]:
        by_reference = {worker.answer: worker for worker in workers if worker.answer is not None}
        patience_s = _LOOK_AGAIN_S if timeout_s is None else min(timeout_s, _LOOK_AGAIN_S)
        if not by_reference:
            time.sleep(patience_s)
            return []
        ready, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=patience_s)
        return [by_reference[reference] for reference in ready]


class _Actor:
    """A worker that is an actor on some node."""

    def __init__(self, ray: Any, needs: dict[str, Any], beginning: tuple):
        self._ray = ray
        remote = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=2, **needs)(JudgingActor)
        self._handle = remote.remote(*beginning)
        self.answer: Any = self._handle.introduce.remote()
        self._heard_s = 0.0  # on the monotonic clock

    def begin(self, number: int, options: JudgeOptions, job: Job) -> None:
        if time.monotonic() - self._heard_s > _FRESH_S:  # its node may have gone while nobody looked
            try:
                self._ray.get(self._handle.introduce.remote(), timeout=_PING_S)
            except self._ray.exceptions.RayError as error:
                raise Lost(_reason(error)) from error
        self._handle.begin.remote(number, options, job)

    def receive(self) -> Answer:
        try:
            answer = self._ray.get(self.answer)
        except self._ray.exceptions.RayError as error:
            raise Lost(_reason(error)) from error
        self.answer, self._heard_s = self._handle.receive.remote(), time.monotonic()
        return _introduced(*answer) if isinstance(answer, tuple) else answer

    def end(self, *, patience_s: float) -> str:
        self._ray.kill(self._handle)
        return "its actor was ended"


class JudgingActor:
    """What runs in an actor; `ray.remote` makes it one. It passes on what a judging process of its own says.

    One of its two threads waits for the next answer, the other one takes jobs.
    """

    def __init__(self, make_judge: MakeJudge, device: str, compilers: int):
        self._child, self._lock = Child(judging_process.main), threading.Lock()
        number = capacity.compilers(compilers, device, workers=1)
        self._child.pipe.send((make_judge, device, number, {}))
        self._ready: Ready = self._child.pipe.recv()

    def introduce(self) -> tuple[str, int, str, Ready]:
        """(version of the evaluator, schema of its verdicts, node, what its judging process says of itself)"""
        import platform

        return EVALUATOR_VERSION, VERDICT_SCHEMA, platform.node(), self._ready

    def begin(self, number: int, options: JudgeOptions, job: Job) -> None:
        with self._lock:
            self._child.pipe.send((number, options, job))

    def receive(self) -> Answer:
        """The next answer. EOFError: the judging process has died."""
        return self._child.pipe.recv()


def _introduced(version: str, schema: int, node: str, ready: Ready) -> Ready:
    """What a new actor says of its worker. PoolError: its node has another version."""
    if (version, schema) != (EVALUATOR_VERSION, VERDICT_SCHEMA):
        raise PoolError(
            f"Ray node {node} has evaluator {version} with verdicts of schema {schema}, this process"
            f" {EVALUATOR_VERSION} with schema {VERDICT_SCHEMA}: install the same version on both"
        )
    return ready


def _join(ray: Any, address: str) -> None:
    """Joins a cluster. PoolError: there is none."""
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host and port.isdecimal():  # Ray itself would try for five minutes
            socket.create_connection((host, int(port)), timeout=_PING_S).close()
        ray.init(address=address, log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise PoolError(
            f"no Ray cluster at {address!r} ({error}): start one with `ray start --head`, or give its address"
        ) from error


def _reason(error: Exception) -> str:
    """One line of Ray's several: the last where code on the node raised, since it says what."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"the Ray actor was lost: {lines[-1 if hasattr(error, 'cause') else 0]}"


def _ray() -> Any:
    if importlib.util.find_spec("ray") is None:
        raise PoolError("Ray is not installed: pip install 'cudal1-jax[ray]', or use the pool `local` or `remote`")
    import ray

    return ray
