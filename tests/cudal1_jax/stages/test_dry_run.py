"""What a run would take of memory, for toy shapes on the devices that tests simulate."""

import dataclasses

import pytest

from cudal1_jax.policy import parameters
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.stages import dry_run
from cudal1_jax.stages.memory import Memory

pytestmark = pytest.mark.usefixtures("compile_quickly")


@pytest.fixture(scope="module")
def model(toy):
    return toy.policy(toy.config()).config


def numbers(model):
    return sum(leaf.size for leaf in parameters.abstract(model).values())


def test_a_table_says_what_lies_where_and_whether_it_fits(toy, model):
    text, fits = dry_run.run(toy.config(), model, topology="", bytes_per_device=10**9)
    assert fits
    assert text.endswith("fits in 1 GB")
    rows = {line.split()[0]: float(line.split()[1]) for line in text.splitlines()[1:-1]}
    assert list(rows) == [*dry_run.PARTS, "peak"]
    assert rows["parameters"] == pytest.approx(4 * numbers(model) / 1e9, abs=1e-3)
    assert rows["update"] > 0
    always = rows["parameters"] + rows["trained"] + rows["optimizer"]
    assert rows["peak"] == pytest.approx(always + max(rows["update"], rows["cache"] + rows["decoding"]), abs=4e-3)


def test_what_fits_on_no_mesh_says_so(toy, model):
    text, fits = dry_run.run(toy.config(), model, topology="", bytes_per_device=1000)
    assert not fits
    assert text.endswith("does not fit in 1e-06 GB: nor does it on 8 devices")


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"fsdp": 16}, "needs other devices than the 8 there are"),
        ({"fsdp": -1}, "say how many devices an axis has"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(toy, model, sizes, complaint):
    config = toy.config()
    config.mesh.update(sizes)
    with pytest.raises(RunError, match=complaint):
        dry_run.run(config, model, topology="", bytes_per_device=10**9)


def test_full_training_keeps_every_parameter_in_float32_with_two_moments(toy, model):
    config = toy.config()
    config.learn.full = True
    text, _ = dry_run.run(config, dataclasses.replace(model, vocabulary=6400), topology="", bytes_per_device=10**9)
    rows = {line.split()[0]: float(line.split()[1]) for line in text.splitlines()[1:-1]}
    assert rows["optimizer"] == pytest.approx(2 * rows["trained"], abs=2e-3)


def test_a_run_that_does_not_fit_names_the_smallest_mesh_on_which_it_does(toy, model, monkeypatch):
    def divided(config, model, mesh):
        assert config.rollout.prompts % mesh.shape["fsdp"] == 0
        return Memory(8 * 10**9 // mesh.shape["fsdp"], 0, 0, 10**9, 0, 0)

    monkeypatch.setattr(dry_run.memory, "plan", divided)
    text, fits = dry_run.run(toy.config(), model, topology="", bytes_per_device=3 * 10**9)
    assert not fits
    assert text.endswith(
        "does not fit in 3 GB: the smallest mesh that takes it is fsdp=4, 3.0 GB on each of 4 devices, with 4 prompts"
        " in an iteration"
    )
