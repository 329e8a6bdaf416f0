"""Programs a minute through a pool: what dispatch costs by itself, and small real programs on the CPU emulator.

python benchmarks/bench_pools.py                        # local; three minutes on two busy cores
python benchmarks/bench_pools.py --pool=remote          # through a server on this machine
python benchmarks/bench_pools.py --pool=ray             # on a Ray cluster of one node, started and ended here
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from evaluator.judge.baseline import plain_text
from evaluator.judge.job import Job
from evaluator.judge.ladder import Judge
from evaluator.tasks import catalog
from evaluator.workers import key_file
from evaluator.workers.local import LocalPool
from evaluator.workers.pool import Pool, stream
from evaluator.workers.ray_pool import RayPool
from evaluator.workers.remote import RemotePool

TASK = "1_019"
OPTIONS = {"device": "cpu", "mode": "quick"}


@contextlib.contextmanager
def remote_pool(workers: int) -> Iterator[Pool]:
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        command = [sys.executable, "-m", "evaluator", "serve", f"--key-file={key}", f"--workers={workers}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            try:
                with RemotePool(address, key_file.load(key), OPTIONS) as pool:
                    yield pool
            finally:
                server.terminate()


@contextlib.contextmanager
def ray_pool(workers: int) -> Iterator[Pool]:
    import ray

    ray.init(num_cpus=workers, log_to_driver=False, include_dashboard=False)
    try:
        with RayPool(OPTIONS) as pool:
            yield pool
    finally:
        ray.shutdown()


def open_pool(name: str, workers: int) -> contextlib.AbstractContextManager[Pool]:
    if name == "local":
        return LocalPool(workers, OPTIONS)
    return remote_pool(workers) if name == "remote" else ray_pool(workers)


def measure(pool: Pool, title: str, text: str, count: int, timing: bool) -> None:
    """Prints programs a minute for `count` jobs, after as many more as there are workers: those start the judges."""
    task = catalog.get(TASK)

    def jobs(number: int) -> Iterator[Job]:
        return (Job(key=key, text=text, task=task, timing=timing) for key in range(number))

    for _ in stream(pool, jobs(pool.in_flight)):
        pass
    began_s = time.perf_counter()
    outcomes = [str(verdict.outcome) for _, verdict in stream(pool, jobs(count))]
    seconds = time.perf_counter() - began_s
    seen = ", ".join(f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes)))
    print(f"{title:<34} {60 * count / seconds:10.0f} programs/minute   {1e3 * seconds / count:8.2f} ms each   ({seen})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", choices=("local", "remote", "ray"), default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--programs", type=int, default=40, help="real programs; of refused ones 25 times as many")
    options = parser.parse_args()
    plain = plain_text(TASK)
    assert plain is not None, "no kernels/ beside the evaluator"
    with open_pool(options.pool, options.workers) as pool:
        print(f"pool {options.pool}, {options.workers} workers, task {TASK} at size cpu, mode quick")
        measure(pool, "refused by the screen (dispatch)", "import os", 25 * options.programs, timing=False)
        measure(pool, "checked, not timed", plain, options.programs, timing=False)
        measure(pool, "checked and timed", plain, options.programs, timing=True)
    with Judge(**OPTIONS) as judge:
        task = catalog.get(TASK)
        judge.check("import os", task)
        began_s = time.perf_counter()
        for _ in range(25 * options.programs):
            judge.check("import os", task)
        each_ms = 1e3 * (time.perf_counter() - began_s) / (25 * options.programs)
    print(f"for comparison, one judge in this process refuses one in {each_ms:.2f} ms")


if __name__ == "__main__":
    main()
