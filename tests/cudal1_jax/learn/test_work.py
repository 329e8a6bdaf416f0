"""Arithmetic of an update, counted by hand."""

from cudal1_jax.learn import work


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
