"""Checkpoints: bit-for-bit resume after a kill, other meshes and dtypes, damage, a full disk, and what is refused."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from cudal1_jax.learn import checkpoint, optimizer, step
from cudal1_jax.learn.checkpoint import Checkpointer, CheckpointError

STATE = {
    "adapter": {"a": jnp.array([0.1, -0.0, jnp.nan, jnp.inf], jnp.float32), "b": jnp.ones((2, 3), jnp.bfloat16)},
    "key": jax.random.key(7),
    "count": jnp.array(3, jnp.int32),
}


def bits(tree) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in checkpoint._named_arrays(tree).values()]


def variant(number: int):
    return {**STATE, "count": jnp.array(number, jnp.int32)}


def test_restore_gives_the_same_bits_the_keys_and_the_json(tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(5, STATE, {"iterator": {"next": 17}, "store": 4})
    with Checkpointer(tmp_path) as checkpoints:
        found = checkpoints.restore(jax.tree.map(jnp.zeros_like, STATE))
    assert (found.step, found.meta) == (5, {"iterator": {"next": 17}, "store": 4})
    assert bits(found.state) == bits(STATE)
    assert jax.random.uniform(found.state["key"]) == jax.random.uniform(STATE["key"])


def test_nothing_saved_yet_gives_the_state_one_has(tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        assert checkpoints.restore(STATE) is None
        first, state = checkpoints.restore_or(STATE)
    assert first == 0
    assert state is STATE


def test_old_ones_are_pruned(tmp_path):
    with Checkpointer(tmp_path, keep=2) as checkpoints:
        for number in range(1, 5):
            checkpoints.save(number, STATE)
        assert checkpoints.steps() == [3, 4]


def test_a_train_state_with_its_optimizer_comes_back_whole(tmp_path):
    transform = optimizer.build(1e-3, clip_norm=1.0)
    state = step.init({"w": jnp.arange(3.0)}, transform)
    updates, moments = transform.update({"w": jnp.ones(3)}, state.optimizer_state, state.trainable)
    state = dataclasses.replace(state, trainable=optax.apply_updates(state.trainable, updates), optimizer_state=moments)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, state)
        _, restored = checkpoints.restore_or(step.init({"w": jnp.zeros(3)}, transform))
    assert jax.tree.structure(restored) == jax.tree.structure(state)
    assert bits(restored) == bits(state)


def on(shape, spec):
    mesh = jax.make_mesh(
        shape, ("data", "fsdp"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[: shape[0] * shape[1]]
    )
    return NamedSharding(mesh, spec)


def test_arrays_come_back_on_another_mesh_and_in_another_dtype(tmp_path):
    values = jax.random.normal(jax.random.key(3), (8, 6))
    before, after = on((4, 2), PartitionSpec("data", "fsdp")), on((1, 2), PartitionSpec(None, "fsdp"))
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, {"w": jax.device_put(values, before), "count": jnp.int32(4)})
        wide = checkpoints.restore(
            {"w": jax.ShapeDtypeStruct((8, 6), jnp.float32, sharding=after), "count": jnp.int32(0)}
        )
        narrow = checkpoints.restore({"w": jax.device_put(values.astype(jnp.bfloat16), before), "count": jnp.int32(0)})
        alone = checkpoints.restore({"w": jnp.zeros((8, 6)), "count": jnp.int32(0)})
    assert wide.state["w"].sharding == after
    np.testing.assert_array_equal(wide.state["w"], values)
    assert narrow.state["w"].sharding == before
    assert bits(narrow.state) == bits({"w": values.astype(jnp.bfloat16), "count": jnp.int32(4)})
    assert len(alone.state["w"].sharding.device_set) == 1


def test_the_state_may_be_given_away_while_it_is_written(tmp_path):
    state = {"w": jax.random.normal(jax.random.key(4), (1 << 18,))}
    expected = bits(state)
    overwrite = jax.jit(lambda s: jax.tree.map(lambda x: -x, s), donate_argnums=0)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, state)
        state = overwrite(state)
        assert bits(checkpoints.restore(state).state) == expected


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x40
    path.write_bytes(content)


def largest_file(folder: Path) -> Path:
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


DAMAGE = {
    "a flipped byte in the largest file": lambda folder: flip_a_byte(largest_file(folder)),
    "a truncated file": lambda folder: os.truncate(largest_file(folder), 10),
    "unreadable JSON": lambda folder: (folder / "meta" / "metadata").write_text("{"),
    "a missing folder": lambda folder: (folder / "arrays").rename(folder / "lost"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_newest_falls_back_to_the_one_before_and_is_named(tmp_path, damage):
    big = {**STATE, "noise": jax.random.normal(jax.random.key(0), (4096,))}
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, {**big, "count": jnp.array(1, jnp.int32)})
        checkpoints.save(2, {**big, "count": jnp.array(2, jnp.int32)})
    damage(tmp_path / "2")
    with Checkpointer(tmp_path) as checkpoints:
        with pytest.warns(UserWarning, match=r"checkpoint .*/2 is damaged .* set aside as damaged-2"):
            found = checkpoints.restore(big)
        assert (found.step, int(found.state["count"])) == (1, 1)
        checkpoints.save(2, big)  # the run goes on and comes to the same step again
        assert checkpoints.restore(big).step == 2
    assert (tmp_path / "damaged-2").is_dir()


def test_all_damaged_is_an_error_and_not_a_fresh_start(tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, STATE)
    (tmp_path / "1" / "meta" / "metadata").write_text("not json")
    with (
        Checkpointer(tmp_path) as checkpoints,
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(CheckpointError, match=r"all checkpoints in .* are damaged"),
    ):
        checkpoints.restore(STATE)


def test_another_structure_is_refused_and_not_taken_for_damage(tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, STATE)
        other = {**STATE, "adapter": {"a": jnp.zeros(5), "b": STATE["adapter"]["b"]}}
        with pytest.raises(CheckpointError, match=r"adapter/a is float32\[4\] there and float32\[5\] here"):
            checkpoints.restore(other)
        assert checkpoints.restore(STATE).step == 1


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, variant(1))
        monkeypatch.setattr(checkpoint.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
        with pytest.raises(CheckpointError, match=r"step 2 needs 4 MB .* 0 MB free; that of step 1 is kept"):
            checkpoints.save(2, variant(2))
        assert checkpoints.restore(STATE).step == 1


def test_a_disk_that_fills_up_while_writing_gives_one_error_and_keeps_the_last(tmp_path):
    # a limit on the size of files stands in for the full disk: the same write fails, with EFBIG in place of ENOSPC
    script = f"""
import resource, jax.numpy as jnp, jax
from cudal1_jax.learn.checkpoint import Checkpointer, CheckpointError
state = {{"x": jax.random.normal(jax.random.key(0), (1 << 18,))}}
with Checkpointer({str(tmp_path)!r}) as checkpoints:
    checkpoints.save(1, state)
    checkpoints.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
    try:
        checkpoints.save(2, state)
        checkpoints.wait()
    except CheckpointError as error:
        print("refused:", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with Checkpointer({str(tmp_path)!r}) as checkpoints:
    print("kept:", checkpoints.restore(state).step, checkpoints.steps())
    checkpoints.save(2, state)
    print("after:", checkpoints.steps())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "refused: checkpoint of step 2 could not be written" in done.stdout, done.stderr
    assert "that of step 1 is kept" in done.stdout
    assert "kept: 1 [1]" in done.stdout
    assert "after: [1, 2]" in done.stdout


def test_meta_that_is_not_json_is_the_callers_error(tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        with pytest.raises(TypeError, match="JSON"):
            checkpoints.save(1, STATE, {"bad": object()})
        assert checkpoints.steps() == []


TRAINING = """
import os, signal, sys, jax, jax.numpy as jnp
from cudal1_jax.learn import losses, optimizer, step
from cudal1_jax.learn.checkpoint import Checkpointer

def loss(trainable, frozen, encoding, shared, rows):
    return losses.Total(jnp.sum(jnp.square(jnp.tanh(rows @ trainable["w"]))), jnp.float32(rows.shape[0])), {}

transform = optimizer.build(1e-2, clip_norm=1.0)
update = step.make_update(step.Objective(lambda *_: (), loss), transform)

def train(directory, kill_at):
    state = step.init({"w": jax.random.normal(jax.random.key(1), (4, 4))}, transform)
    with Checkpointer(directory) as checkpoints:
        first, state = checkpoints.restore_or(state)
        for number in range(first, 12):
            if number == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)  # while the checkpoint of this step is being written
            rows = jax.random.normal(jax.random.fold_in(jax.random.key(2), number), (1, 2, 3, 4))
            state, _ = update(state, (), (), rows)
            if number % 3 == 2:
                checkpoints.save(number + 1, state)
    print(first, jax.device_get(state.trainable["w"]).tobytes().hex(), int(state.step))

for directory in sys.argv[2:]:
    train(directory, int(sys.argv[1]))
"""


def test_a_killed_run_ends_with_the_bits_of_an_uninterrupted_one(tmp_path):
    def train(kill_at: int, *names: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", TRAINING, str(kill_at), *(str(tmp_path / name) for name in names)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert train(6, "killed").returncode == -signal.SIGKILL
    done = train(-1, "killed", "straight")
    assert done.returncode == 0, done.stderr
    resumed, straight = (line.split() for line in done.stdout.splitlines())
    assert (int(resumed[0]) in (3, 6), straight[0]) == (True, "0")
    assert resumed[1:] == straight[1:]
    assert straight[2] == "12"
