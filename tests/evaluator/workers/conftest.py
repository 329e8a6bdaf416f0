"""Scripted judges that workers can import, in children and on Ray nodes alike, and a task to judge."""

import time
from pathlib import Path

import pytest

from evaluator.judge.job import Job
from evaluator.tasks.task import Array, Task

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
