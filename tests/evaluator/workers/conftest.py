"""Scripted judges that workers can import, in children and on Ray nodes alike, and evaluators that serve."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator.judge.job import Job
from evaluator.tasks.task import Array, Task
from evaluator.workers import key_file
from evaluator.workers.remote import RemotePool

HERE = Path(__file__).parent
TASK = Task(id="t", name="t", family="x", source="", sizes={"cpu": (Array("x", (1,)),)})


@pytest.fixture(scope="session")
def scripted():
    """The module `scripted_judges`, on a path that children inherit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import scripted_judges

        yield scripted_judges


@pytest.fixture
def job():
    def make(key, text="ok", **fields):
        return Job(key=key, text=text, task=TASK, **fields)

    return make


@pytest.fixture
def wait_until():
    """Waits for something that will happen; the limit is there only to end a test that failed."""

    def wait(happened, limit_s=60.0):
        end_s = time.monotonic() + limit_s
        while not happened():
            assert time.monotonic() < end_s, f"not within {limit_s:g} s: {happened}"
            time.sleep(0.05)

    return wait


@pytest.fixture
def running():
    """Whether a process still does anything: where nobody collects orphans, one that has ended stays as a zombie."""

    def look(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    return look


@pytest.fixture(scope="module")
def key_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "key"
    key_file.load_or_create(path)
    return path


@contextlib.contextmanager
def serving(key_path, folder):
    """Starts evaluators and waits until they listen; gives (process, address) of each."""
    started = []

    def make(address="127.0.0.1:0", workers=2):
        log = (folder / f"server{len(started)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, str(HERE / "serving.py"), address, str(key_path), str(workers)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        started.append((process, log))
        line = process.stdout.readline()
        assert line.endswith(f" judges on cpu with {workers} worker{'s' * (workers > 1)}\n")
        return process, line.split()[0]

    try:
        yield make
    finally:
        for process, log in started:
            process.kill()
            process.wait()
            process.stdout.close()
            log.close()


@pytest.fixture
def serve(key_path, tmp_path):
    """An evaluator of a test's own, for those that do something to it."""
    with serving(key_path, tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def address(key_path, tmp_path_factory):
    """One evaluator with two workers for the tests that leave it as it was."""
    with serving(key_path, tmp_path_factory.mktemp("evaluator")) as make:
        yield make()[1]


@pytest.fixture
def connect(key_path):
    pools = []

    def make(address, **options):
        options.setdefault("patience_s", 60.0)
        pools.append(RemotePool(address, key_file.load(key_path), **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
