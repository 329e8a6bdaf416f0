"""What a run would take of each device's memory, read off the compiled programs: nothing is allocated.

The programs are those of the run (`setup`), lowered on shapes with shardings. What lies in memory between steps is
exact; temporaries are those of the compiler of the platform that the devices belong to.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from cudal1_jax.learn import batch, step, values
from cudal1_jax.learn.batch import Completions, Prompts
from cudal1_jax.policy import decode, lora, parameters, sharding
from cudal1_jax.policy.config import DecoderConfig
from cudal1_jax.rollout import chunk, sampler, schedule
from cudal1_jax.stages import objective, setup

PyTree = Any


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes on each device."""

    parameters: int  # as the update, the reference and, where its dtype is another, the rollout keep them
    trained: int  # float32 master values of what is trained: an adapter, or all parameters again
    optimizer: int  # its moments
    update: int  # temporaries of the update: activations and gradients
    cache: int  # keys and values of the prompts and completions of a rollout
    decoding: int  # temporaries of prefill and decoding, and the weights in the layout of decoding

    @property
    def resident(self) -> int:
        """What lies in memory all the time."""
        return self.parameters + self.trained + self.optimizer

    @property
    def peak(self) -> int:
        """The larger of an update and a rollout, beside what lies there all the time."""
        return self.resident + max(self.update, self.cache + self.decoding)


def plan(config: ConfigDict, model: DecoderConfig, mesh: Mesh) -> Memory:
    """What a stage 3 run of `config` with a policy of shape `model` takes on each device of `mesh`.

    ValueError where the samples of an iteration cannot be divided over the mesh.
    """
    full = config.learn.full
    update_dtype = setup.frozen_dtype(config)
    params = _parameters(model, jnp.dtype(update_dtype), mesh)
    rollout_params = _parameters(model, jnp.dtype(config.policy.rollout_dtype), mesh)
    trainable, divided = _trainable(config, model, mesh)
    optimizer = setup.optimizer_of(config)
    state = _state(optimizer, trainable, divided, mesh)
    program = step.make_update(objective.build(config, model), optimizer, divided)
    update = _compiled(mesh, program, state, params, *_batch(config, mesh)).memory_analysis()
    cache, decoding = _rollout(config, model, rollout_params, mesh)
    adapted = {name: params[name] for name in config.policy.targets}
    drawn_from = rollout_params if full else {name: rollout_params[name] for name in adapted}  # changed by training
    kept = _bytes(params) + (_bytes(rollout_params) if config.policy.rollout_dtype != update_dtype else 0)
    if full and config.learn.loss != objective.REINFORCE:
        kept += _bytes(adapted)  # the reference: the base with the first adapter merged in
    return Memory(
        parameters=kept,
        trained=_bytes(trainable),
        optimizer=_bytes(state.optimizer_state),
        update=update.temp_size_in_bytes,
        cache=cache,
        decoding=decoding + _bytes(drawn_from),
    )


def resident_bytes(config: ConfigDict, model: DecoderConfig) -> int:
    """Bytes of what lies in memory between steps, over all devices together; less than `plan` finds on any mesh."""
    numbers = sum(math.prod(leaf.shape) for leaf in parameters.abstract(model).values())
    dtypes = {setup.frozen_dtype(config), config.policy.rollout_dtype}
    moments = 2 * jnp.dtype(config.learn.moment_dtype).itemsize
    trained = 4 + moments if config.learn.full else 0
    return numbers * (sum(jnp.dtype(dtype).itemsize for dtype in dtypes) + trained)


def _parameters(model: DecoderConfig, dtype: jnp.dtype, mesh: Mesh) -> dict[str, jax.ShapeDtypeStruct]:
    return _with(parameters.abstract(model, dtype), sharding.of_parameters(model, mesh))


def _trainable(config: ConfigDict, model: DecoderConfig, mesh: Mesh) -> tuple[PyTree, PyTree]:
    """Shapes of what is trained, and their shardings."""
    begin: Any
    divided: Any
    whole: Any = NamedSharding(mesh, PartitionSpec())
    if config.learn.full:
        begin, divided = _parameters(model, jnp.dtype(jnp.float32), mesh), sharding.of_parameters(model, mesh)
    else:
        targets = tuple(config.policy.targets)
        begin = jax.eval_shape(lambda: lora.init(jax.random.key(0), model, config.policy.rank, targets))
        divided = sharding.of_adapter(model, begin, mesh)
    if config.learn.loss == objective.PPO:
        begin = jax.eval_shape(lambda actor: values.with_critic(actor, model.width), begin)
        divided = values.ActorCritic(divided, whole, whole)
    return _with(begin, divided), divided


def _state(optimizer: optax.GradientTransformation, trainable: PyTree, divided: PyTree, mesh: Mesh) -> step.TrainState:
    """The learner's state: moments are divided as what they belong to, the rest lies whole on every device."""
    whole = NamedSharding(mesh, PartitionSpec())
    count: Any = jax.ShapeDtypeStruct((), jnp.int32, sharding=whole)
    shapes = jax.eval_shape(optimizer.init, trainable)
    moments = optax.tree.map_params(
        optimizer,
        lambda leaf, where: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where),
        shapes,
        divided,
        transform_non_params=lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=whole),
    )
    return step.TrainState(trainable, moments, count)


def _batch(config: ConfigDict, mesh: Mesh) -> tuple[Prompts, Completions]:
    """The samples of an iteration, every prompt and completion as long as the config lets it be."""
    N, G, M = config.rollout.prompts, config.rollout.group, config.learn.micro_batches
    together = sharding.rows(mesh)  # prompts that are encoded at a time, one on each part of the mesh
    if N % together or G % M:
        raise ValueError(
            f"{N} prompts of {G} samples cannot be divided over {together} parts of the mesh (data x fsdp) and"
            f" {M} micro-batches: make config.rollout.prompts a multiple of the first and config.rollout.group of the"
            " second"
        )
    T = config.rollout.completion_tokens
    prompts, rows = batch.split(
        batch.prompts([[0] * config.rollout.prompt_tokens] * N, bucket=config.learn.prompt_bucket),
        batch.completions(
            [[0] * T] * (N * G), advantages=[0.0] * (N * G), sampler_logprobs=[[0.0] * T] * (N * G), bucket=T
        ),
        slices=N // together,
        micro_batches=M,
        bucket=config.learn.completion_bucket,
    )
    return _with(prompts, sharding.of_rows(prompts, mesh, axis=1)), _with(rows, sharding.of_rows(rows, mesh, axis=2))


def _rollout(config: ConfigDict, model: DecoderConfig, params: PyTree, mesh: Mesh) -> tuple[int, int]:
    """Bytes of the keys and values of a rollout, and of what prefill and decoding need beside them.

    Decoding is compiled for two layers, which the compiler does not scan: the temporaries of further ones lie where
    those of the first lay.
    """
    options = setup.sampling_options(config, stop_ids=(0,))
    shape = schedule.sizes(config.rollout.prompts, config.rollout.group, options.slots)
    tokens = sampler.pad_prompt([0] * config.rollout.prompt_tokens, options.prompt_bucket)[None]
    one, number = np.ones(1, np.int32), np.int32(0)

    def state(model: DecoderConfig, params: PyTree) -> tuple[chunk.Pool, chunk.State]:
        pool = jax.eval_shape(lambda: chunk.empty_pool(model, params, shape, tokens.shape[1]))
        state = jax.eval_shape(lambda: chunk.empty_state(model, options, shape, pool.last.dtype))
        prompts = _with(pool.prompts, sharding.of_cache(pool.prompts, mesh))
        return pool._replace(prompts=prompts), state._replace(
            cache=_with(state.cache, sharding.of_cache(state.cache, mesh))
        )

    pool, whole = state(model, params)
    filling = _compiled(mesh, chunk.prefill, model, params, pool, number, tokens, one)
    short = dataclasses.replace(model, layers=min(2, model.layers))
    few = _parameters(short, next(iter(params.values())).dtype, mesh)
    prepare = jax.jit(lambda params: decode.prepare(short, params))
    weights = _with(jax.eval_shape(prepare, few), _compiled(mesh, prepare, few).output_shardings)
    rows = schedule.Schedule(config.rollout.prompts, config.rollout.group, shape)
    slots = _shapes(sampler.slots_of(rows, np.arange(config.rollout.prompts, dtype=np.int32), 0))
    key = jax.eval_shape(lambda: jax.random.key(0))
    few_pool, few_state = state(short, few)
    drawing = _compiled(mesh, chunk.run, short, options, weights, few_pool, slots, key, number, few_state)
    temporaries = max(program.memory_analysis().temp_size_in_bytes for program in (filling, drawing))
    laid_out = _bytes(weights) + (model.layers - short.layers) * _bytes(weights.layers[0])
    return _bytes((pool.prompts, whole.cache)), temporaries + laid_out


def _compiled(mesh: Mesh, program: Any, *arguments: PyTree) -> Any:
    """The jitted program, compiled for shapes; nothing runs on the mesh, which may belong to another machine."""
    with jax.set_mesh(mesh):
        return program.lower(*arguments).compile()


def _shapes(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)


def _with(shapes: PyTree, shardings: PyTree) -> PyTree:
    return jax.tree.map(lambda x, where: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where), shapes, shardings)


def _bytes(tree: PyTree) -> int:
    return sum(map(sharding.shard_bytes, jax.tree.leaves(tree)))
