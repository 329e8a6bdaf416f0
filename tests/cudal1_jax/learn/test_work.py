"""Arithmetic of an update, counted by hand."""

import dataclasses

from cudal1_jax.learn import work
from cudal1_jax.policy.config import Experts
from cudal1_jax.policy.sizes import SIZES


def test_two_completions_of_one_prompt_by_hand(toy):
    # weights: 2 layers of q 16x16, k and v 16x8, o 16x16, gate, up and down 16x24: 3840, twice each a token
    # vocabulary: 2 * 50 * 16 a token of a completion; pairs: 4 * 2 layers * 4 heads * 4, of 1 + 2 + 3 and of 4 + 5
    forward = 7680 * (3 + 2) + 1600 * 2 + 128 * (6 + 9)
    assert work.update_flops(toy.config, [3], [[2, 0]], full=False) == 2 * forward
    assert work.update_flops(toy.config, [3], [[2, 0]], full=True) == 3 * forward


def test_a_shared_prompt_is_counted_once(toy):
    apart = work.update_flops(toy.config, [7, 7], [[4], [4]], full=False)
    together = work.update_flops(toy.config, [7], [[4, 4]], full=False)
    prompt = work.update_flops(toy.config, [7], [[]], full=False)
    assert apart == together + prompt


def test_of_routed_experts_the_active_ones_count(toy):
    experts = Experts(count=4, active=2, mlp_width=8, normalised=True)
    config = dataclasses.replace(toy.config, experts=experts)
    # 2 layers of q, k, v and o: 768; the gate 16x4; two experts of three 16x8: 1600, twice each a token; 128 a pair
    assert work.update_flops(config, [1], [[]], full=False) == 2 * (2 * 2 * 1600 + 128)


def test_published_counts_of_active_parameters():
    one_token = work.update_flops(SIZES["DeepSeek-V3-671B"], [1], [[]], full=False) / 2
    assert abs(one_token / 2 / 1e9 - 36) < 1  # 37 billion with the embedding table
