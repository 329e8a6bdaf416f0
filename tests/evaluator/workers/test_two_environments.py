"""Learner and evaluator in two environments: one without CuPy, the other without Flax and what only training needs.

An environment is a venv with links to what is installed here but for the packages left out, which cannot be imported
there, as on a machine that never had them.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from evaluator.judge.baseline import kernels_folder

TRAINING = ("flax", "optax", "orbax-checkpoint", "grain", "transformers", "tokenizers", "gguf", "safetensors", "jinja2",
            "ml_collections", "tensorboardX")  # fmt: skip
GPU = tuple(
    name
    for name in {each.metadata["Name"] for each in importlib.metadata.distributions()}
    if name.lower().startswith(("cupy", "nvidia-cudnn", "nvidia-cuda-nvrtc"))
)
ROOT = kernels_folder().parent

LEARNER = """
import json, sys
from cudal1_jax.stages import checks, pools, setup
from evaluator.judge.baseline import plain_text
from evaluator.judge.job import Job
from evaluator.tasks import catalog
import runpy

config = runpy.run_path("configs/crl.py")["get_config"]("smoke")
config.pool.kind, config.pool.address, config.pool.key_file = "remote", sys.argv[1], sys.argv[2]
checks._check_judging(config)
right = plain_text("1_019")
wrong = right.replace("v < 0.0f", "v < 0.5f")
assert wrong != right
with pools.pool(config) as pool:
    for key, text in (("right", right), ("wrong", wrong), ("refused", "import os")):
        pool.submit(Job(key=key, text=text, task=catalog.get("1_019"), timing=False))
    print(json.dumps({job.key: [str(verdict.outcome), verdict.device_name] for job, verdict in pool.completed()}))
"""


def left_out(distributions):
    """Names in site-packages that belong to some distributions, where they are installed."""
    names = set()
    for distribution in distributions:
        try:
            files = importlib.metadata.files(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        names |= {file.parts[0] for file in files if file.parts[0] not in ("..", "nvidia")}
    return names


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Makes an environment without some distributions; gives its interpreter."""

    def make(name, without):
        folder = tmp_path_factory.mktemp(name)
        venv.create(folder, symlinks=True, with_pip=False)
        (site,) = folder.glob("lib/python*/site-packages")
        gone = left_out(without)
        for path in Path(importlib.metadata.distribution("pytest").locate_file("")).iterdir():
            if path.name not in gone:
                (site / path.name).symlink_to(path)
        return str(folder / "bin" / "python")

    return make


@pytest.fixture(scope="module")
def learner(environment):
    return environment("learner", without=GPU)


@pytest.fixture(scope="module")
def evaluator(environment):
    return environment("evaluator", without=TRAINING)


@pytest.fixture
def serving(evaluator, tmp_path):
    """The address and the key file of an evaluator in its environment."""
    key = tmp_path / "key"
    command = [evaluator, "-m", "evaluator", "serve", f"--key-file={key}", "--workers=2"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=tmp_path, env=bare())
    yield server.stdout.readline().split()[0], str(key)
    server.terminate()
    assert server.wait(timeout=60) == 0
    server.stdout.close()


def bare():
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"JAX_PLATFORMS": "cpu"}


def python(interpreter, *arguments):
    done = subprocess.run([interpreter, *arguments], capture_output=True, text=True, cwd=ROOT, env=bare(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("where", "package"), [("learner", "cupy"), ("evaluator", "flax"), ("evaluator", "orbax")])
def test_the_environments_lack_what_they_should(request, where, package):
    interpreter = request.getfixturevalue(where)
    find = f"import importlib.util as u, sys; print(u.find_spec({package!r}) is None, sys.prefix)"
    absent, prefix = python(interpreter, "-c", find).split()
    assert absent == "True"
    assert prefix != sys.prefix


def test_a_learner_is_served_by_an_evaluator_in_another_environment(learner, serving):
    found = json.loads(python(learner, "-c", LEARNER, *serving))
    outcomes = {key: outcome for key, (outcome, _) in found.items()}
    assert outcomes == {"right": "ok", "wrong": "wrong_value", "refused": "refused"}
    assert len({device for _, device in found.values()} - {""}) == 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_whole_run_is_judged_by_an_evaluator_in_another_environment(learner, serving, tmp_path):
    address, key = serving
    table = python(
        learner, "-m", "cudal1_jax.main", "--config=configs/crl.py:smoke", f"--runs={tmp_path}", "--run=remote",
        "--config.pool.kind=remote", f"--config.pool.address={address}", f"--config.pool.key_file={key}",
    )  # fmt: skip
    assert "1_026" in table
    summary = json.loads((tmp_path / "remote" / "summary.json").read_text())
    assert summary["samples"] == 2
    assert summary["tasks"][0]["best_speedup"] is not None
