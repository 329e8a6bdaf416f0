"""The compiled programs of a rollout on platforms that this machine lacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import decode, parameters
from cudal1_jax.rollout import chunk, int8, sampler
from cudal1_jax.rollout.options import SamplingOptions
from cudal1_jax.rollout.schedule import Schedule, sizes


@pytest.mark.parametrize("eight_bits", [False, True])
def test_a_chunk_lowers_for_gpus_and_tpus(config, eight_bits):
    options = SamplingOptions(temperature=0.7, top_k=40, top_p=0.9, min_p=0.01, stop_ids=(3, 5), int8=eight_bits)
    shape = sizes(4, 2, 3)
    params = parameters.abstract(config, jnp.bfloat16)

    def weights(params):
        prepared = decode.prepare(config, params)
        return int8.quantised(prepared) if eight_bits else prepared

    pool = jax.eval_shape(lambda params: chunk.empty_pool(config, params, shape, 8), params)
    state = jax.eval_shape(lambda: chunk.empty_state(config, options, shape, jnp.bfloat16))
    slots = sampler.slots_of(Schedule(4, 2, shape), np.arange(4, dtype=np.int32), 0)
    traced = chunk.run.trace(
        config, options, jax.eval_shape(weights, params), pool, slots, jax.random.key(0), np.int32(0), state
    )
    text = traced.lower(lowering_platforms=("cuda", "tpu")).as_text()
    assert ("xi8>" in text) == eight_bits
    assert "custom_call" not in text  # XLA's own operations alone, which every platform has
