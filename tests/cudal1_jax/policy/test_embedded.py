"""The embedded model against transformers' PyTorch model from the same file."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cudal1_jax.policy import decoder, gguf, tokenizer

TOLERANCE = 2e-4  # float32; logits span -31 to 39. Rows of q and k left interleaved give 34


@pytest.fixture(scope="module")
def embedded():
    return gguf.load()


@pytest.fixture(scope="module")
def reference():
    """The module beside this file, which also makes the stored logits."""
    spec = importlib.util.spec_from_file_location("reference_logits", Path(__file__).with_name("reference_logits.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def logits_of(embedded, ids: list[int]) -> np.ndarray:
    config, params = embedded
    run = jax.jit(lambda params, tokens: decoder.logits(config, params, decoder.forward(config, params, tokens)))
    return np.asarray(run(params, jnp.asarray([ids], jnp.int32)))[0]


def test_the_shape_is_the_file_s(embedded):
    config, params = embedded
    assert (config.layers, config.width, config.heads, config.key_heads, config.head_size) == (30, 576, 9, 3, 64)
    assert config.rope_theta == 100_000
    assert sum(x.size for x in params.values()) == 134_515_008


def test_logits_equal_the_stored_ones_of_pytorch(embedded, reference):
    stored = np.load(reference.STORED)
    assert reference.prompt_ids() == stored["ids"].tolist()
    continued = [*stored["ids"].tolist(), *stored["greedy"].tolist()]
    logits = logits_of(embedded, continued)
    prompt = len(stored["ids"])
    np.testing.assert_allclose(logits[:prompt, stored["columns"]], stored["logits"], atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(logits[:prompt].argmax(-1), stored["likeliest"])
    np.testing.assert_array_equal(logits[prompt - 1 : -1].argmax(-1), stored["greedy"])


@pytest.mark.torch
def test_logits_and_ids_equal_those_of_transformers(embedded, reference):
    from transformers import AutoTokenizer

    model, ids = reference.torch_model(), reference.prompt_ids()
    np.testing.assert_allclose(logits_of(embedded, ids), reference.torch_logits(model, ids), atol=TOLERANCE, rtol=0)
    theirs = AutoTokenizer.from_pretrained(gguf.embedded_path().parent, gguf_file=gguf.FILE_NAME)
    messages = [{"role": "user", "content": "Write a kernel.\n\tfloat *x;"}]  # no digits, which theirs does not split
    rendered = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    expected = theirs(rendered, add_special_tokens=False)["input_ids"]
    assert tokenizer.load().render_chat(messages[0]["content"]) == expected
