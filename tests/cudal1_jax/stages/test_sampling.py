import re

import numpy as np
import pytest

from cudal1_jax.contrastive.exemplars import Exemplar
from cudal1_jax.report.run_directory import RunError
from cudal1_jax.rollout.sampler import Rollout
from cudal1_jax.stages import sampling
from evaluator.records import Interval
from evaluator.tasks import catalog


class Words:
    """Counts words as tokens."""

    def encode(self, text):
        return list(range(len(text.split())))

    render_chat = encode

    def decode(self, ids):
        return " ".join(map(str, ids))


def exemplar(words, value):
    return Exemplar("word " * words, Interval(value, value, value), sha256=f"{words}")


def fit(chosen, limit):
    return sampling.fit_prompt(0, catalog.get("1_019"), "cpu", chosen, "cpu", Words(), limit)


def test_a_request_that_fits_keeps_its_exemplars_and_names_them_as_its_lineage():
    prompt = fit([exemplar(5, 2.0), exemplar(7, 1.0)], 1000)
    assert set(prompt.exemplars) == {"5", "7"}
    assert prompt.task == "1_019"


def test_the_longest_exemplar_is_left_out_of_a_request_that_is_too_long():
    bare = len(fit([], 1000).text.split())
    prompt = fit([exemplar(400, 9.0), exemplar(7, 1.0)], bare + 100)
    assert prompt.exemplars == ("7",)
    assert fit([exemplar(400, 9.0), exemplar(300, 1.0)], bare + 100).exemplars == ()


def test_a_task_whose_text_alone_is_too_long_is_refused_with_the_value_to_raise():
    with pytest.raises(RunError, match=re.escape("raise config.rollout.prompt_tokens")):
        fit([], 10)


def test_completions_are_cut_at_their_lengths_and_belong_to_their_prompts():
    rollout = Rollout(
        tokens=np.arange(12, dtype=np.int32).reshape(4, 3),
        lengths=np.array([3, 1, 2, 3]),
        logprobs=-np.arange(12, dtype=np.float32).reshape(4, 3),
        finished=np.array([True, False, True, False]),
    )
    prompts = [fit([], 1000), fit([], 1000)]
    samples = sampling.roll_out(prompts, Words(), lambda ids: rollout)
    assert [s.prompt for s in samples] == [0, 0, 1, 1]
    assert [s.tokens.tolist() for s in samples] == [[0, 1, 2], [3], [6, 7], [9, 10, 11]]
    assert samples[2].logprobs.tolist() == [-6.0, -7.0]
    assert [s.text for s in samples] == ["0 1 2", "3", "6 7", "9 10 11"]
    assert [s.finished for s in samples] == [True, False, True, False]
