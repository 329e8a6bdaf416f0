"""Feeds the evaluator malformed inputs by the thousand and prints what came of them.

    python tests/evaluator/fuzz/campaign.py --inputs=20000 --seed=0

Exit code 1 where an input crashed or hung the evaluator, or memory, processes, descriptors or files grew; each such
input is printed with the seed that makes it again.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import resource
import signal
import sys
import tempfile
import time
import warnings

SHARES = {
    "completions": 0.36,
    "programs": 0.12,
    "CUDA texts": 0.04,
    "texts for NVRTC": 0.03,
    "plans": 0.35,
    "tapes": 0.09,
    "judged programs": 0.01,
}
INPUT_CPU_S = 10.0  # of this process for one input: a hang is what takes longer
GROWTH_BYTES = 48 << 20  # of resident memory between the first tenth and the end


class Hang(Exception):
    pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=sorted(SHARES), help="inputs of this kind alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        report = Campaign(options.inputs, options.seed, options.kind).run()
        left = [path.name for path in pathlib.Path(cache).rglob("new-*")]
    for problem in report + [f"left in the cache: {name}" for name in left]:
        print("PROBLEM", problem)
    sys.exit(bool(report or left))


class Campaign:
    def __init__(self, inputs: int, seed: int, kind: str | None = None):
        shares = SHARES if kind is None else {kind: 1.0}
        self._counts = {name: max(1, round(share * inputs)) for name, share in shares.items()}
        self._seed = seed

    def run(self) -> list[str]:
        """Prints a table; returns the problems."""
        from targets import targets

        before, began = state(), time.monotonic()
        outcomes: dict[str, collections.Counter] = {}
        problems: list[str] = []
        slowest = (0.0, "")
        with warnings.catch_warnings(), targets() as known:
            warnings.simplefilter("error", RuntimeWarning)
            counts = {name: count for name, count in self._counts.items() if name in known}
            total, done, early = sum(counts.values()), 0, None
            for name, count in counts.items():
                outcomes[name] = collections.Counter()
                for number in range(count):
                    spent_s = time.process_time()
                    outcome = self._one(known[name], name, number, problems)
                    slowest = max(slowest, (time.process_time() - spent_s, f"{self._seed}/{name}/{number}"))
                    outcomes[name][outcome] += 1
                    done += 1
                    if early is None and done >= total // 10:
                        early = state()
            late = state()
        after = state()
        self._print(outcomes, before, late, after, time.monotonic() - began, slowest)
        if early is not None and late.resident_bytes - early.resident_bytes > GROWTH_BYTES:
            problems.append(f"memory grew from {early.resident_bytes >> 20} to {late.resident_bytes >> 20} MiB")
        if after.processes > before.processes or after.descriptors > before.descriptors:
            problems.append(f"left behind: {before} before, {after} after")
        return problems

    def _one(self, target, name: str, number: int, problems: list[str]) -> str:
        identity = f"{self._seed}/{name}/{number}"
        try:
            with cpu_deadline():
                return target(random.Random(identity))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            problems.append(f"{identity}: {type(error).__name__}: {str(error)[:2000]}")
            return f"BROKEN {type(error).__name__}"

    @staticmethod
    def _print(outcomes, before, late, after, spent_s: float, slowest) -> None:
        for name, found in outcomes.items():
            listed = ", ".join(f"{outcome} {count}" for outcome, count in found.most_common())
            print(f"{found.total():6d} {name}: {listed}")
        total = sum(found.total() for found in outcomes.values())
        print(f"{total:6d} inputs in {spent_s:.0f} s; the longest took {slowest[0]:.2f} s of CPU here ({slowest[1]})")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"memory: {before.resident_bytes >> 20} MiB before, {late.resident_bytes >> 20} after, peak {peak} MiB")
        print(f"child processes: {before.processes} before, {after.processes} after; ", end="")
        print(f"descriptors: {before.descriptors} before, {after.descriptors} after")


State = collections.namedtuple("State", "resident_bytes processes descriptors")


def state() -> State:
    """What this process has: resident memory, child processes (zombies too), open descriptors."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    children = 0
    for thread in pathlib.Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            children += len((thread / "children").read_text().split())
    return State(pages * resource.getpagesize(), children, len(os.listdir("/proc/self/fd")))


@contextlib.contextmanager
def cpu_deadline(cpu_s: float = INPUT_CPU_S):
    """Raises Hang in this process once it has computed for so long; a busy machine makes no hang."""

    def give_up(*_):
        raise Hang(f"still computing after {cpu_s:g} s")

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
