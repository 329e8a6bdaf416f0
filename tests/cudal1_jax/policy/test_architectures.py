"""Every architecture against transformers' PyTorch model, and its ways of running against each other."""

import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import checkpoint, decode, decoder, lora, parameters


def beside(name: str) -> Any:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


architectures = beside("architectures")
TOKENS, TOLERANCE = jnp.asarray(architectures.TOKENS), architectures.TOLERANCE
PROMPT = 9  # tokens of a row that are its prompt where it is cut in two


@pytest.fixture(autouse=True, scope="module")
def _compile_quickly() -> Iterator[None]:
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


class Results(NamedTuple):
    hidden: jax.Array  # [B, T, D] of whole sequences
    logits: jax.Array  # [B, T, V]
    gradients: dict[str, jax.Array]  # of the mean loss
    continued: jax.Array  # [B, T - PROMPT, D] of continuations of prefilled prompts
    decoded: jax.Array  # [B, T - PROMPT, D], one token at a time


@functools.partial(jax.jit, static_argnums=0)
def run(config, params, tokens) -> Results:
    """All in one program: compiling is what these tests cost."""

    def loss(params):
        hidden = decoder.forward(config, params, tokens)
        logits = decoder.logits(config, params, hidden)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], axis=-1)
        return -jnp.mean(chosen), (hidden, logits)

    gradients, (hidden, logits) = jax.grad(loss, has_aux=True)(params)
    prompts, rest = tokens[:, :PROMPT], tokens[:, PROMPT:]
    lengths = jnp.full(tokens.shape[0], PROMPT)
    prefilled, _ = decoder.prefill(config, params, jnp.pad(prompts, [(0, 0), (0, 2)]), lengths)
    continued = decoder.forward_with_prefix(config, params, prefilled, lengths, rest)
    weights, shared = decode.prepare(config, params), decode.prompts(prefilled, lengths)

    def step(cache, xs):
        hidden, cache = decode.step(config, weights, shared, cache, *xs)
        return cache, hidden

    cache = decode.empty_cache(config, rest.shape[0], rest.shape[1], params["embed"].dtype)
    decoded = jax.lax.scan(step, cache, (rest.T, jnp.arange(rest.shape[1])))[1].transpose(2, 0, 1)
    return Results(hidden, logits, gradients, continued, decoded)


@pytest.fixture(scope="module", params=architectures.FIELDS)
def case(request):
    """Architecture, config, parameters and what they give."""
    config, params = architectures.model(request.param)
    params = {name: jnp.asarray(x) for name, x in params.items()}
    return request.param, config, params, jax.device_get(run(config, params, TOKENS))


def test_logits_and_gradients_are_those_that_transformers_gave(case):
    name, _, _, results = case
    with np.load(architectures.STORED) as stored:
        np.testing.assert_allclose(results.logits[:, ::5], stored[f"{name}.logits"], atol=TOLERANCE)
        expected = stored[f"{name}.gradients"]
    np.testing.assert_allclose(architectures.summary(results.gradients), expected, atol=TOLERANCE)
    without = {"router_bias"} if name == "deepseek_v3" else set()  # moves the choice of experts alone
    largest = dict(zip(sorted(results.gradients), np.abs(expected).max(axis=1), strict=True))
    assert {parameter for parameter, value in largest.items() if value < 1e-4} == without


def test_continuing_a_prompt_and_decoding_equal_the_full_forward_pass(case):
    _, _, _, results = case
    np.testing.assert_allclose(results.continued, results.hidden[:, PROMPT:], atol=5e-5)
    np.testing.assert_allclose(results.decoded, results.hidden[:, PROMPT:], atol=5e-5)


@pytest.mark.torch
def test_transformers_gives_the_same_from_what_is_saved(case, tmp_path):
    pytest.importorskip("torch", reason="needs PyTorch: pip install torch")
    name, config, params, results = case
    checkpoint.save(tmp_path, config, params, file_bytes=20_000)
    logits, gradients = architectures.torch_results(tmp_path, config)
    np.testing.assert_allclose(results.logits, logits, atol=TOLERANCE)
    for parameter, expected in gradients.items():
        np.testing.assert_allclose(
            results.gradients[parameter], expected, atol=TOLERANCE, err_msg=f"{name} {parameter}"
        )


def test_every_parameter_has_named_axes(case):
    _, config, params, _ = case
    axes = parameters.logical_axes(config)
    assert {name: len(names) for name, names in axes.items()} == {name: x.ndim for name, x in params.items()}


def test_an_adapter_of_latent_attention_equals_its_merged_form_and_comes_back(tmp_path):
    config, params = architectures.model("deepseek_v3")
    params = {name: jnp.asarray(x) for name, x in params.items()}
    targets = ("q_down", "kv_up", "o", "gate")
    shapes = jax.eval_shape(lambda: lora.init(jax.random.key(0), config, 2, targets))
    rng = np.random.default_rng(0)
    adapter = jax.tree.map(lambda x: jnp.asarray(0.25 * rng.integers(-2, 3, x.shape), x.dtype), shapes)
    forward = jax.jit(decoder.forward, static_argnums=0)
    apart = forward(config, params, TOKENS, adapter=adapter)
    np.testing.assert_allclose(apart, forward(config, lora.merge(params, adapter), TOKENS), atol=5e-5)
    assert float(jnp.abs(apart - forward(config, params, TOKENS)).max()) > 1e-2
    lora.save(tmp_path, adapter, base_model="some/base")
    jax.tree.map(np.testing.assert_array_equal, lora.load(tmp_path, config), adapter)


def test_targets_that_a_model_lacks_are_refused():
    config, _ = architectures.model("deepseek_v3")
    with pytest.raises(ValueError, match=r"\['q'\]; choose from o, gate, up, down, q_down"):
        lora.init(jax.random.key(0), config, 2, ("q",))
