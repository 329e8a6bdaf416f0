"""Published sizes have the published numbers of parameters."""

import math

import pytest

from cudal1_jax.policy import hf_config, parameters
from cudal1_jax.policy.sizes import SIZES

# as the publishers' files hold them; DeepSeek-V3 without the layer that predicts a further token
TOTALS = {
    "SmolLM2-135M": 134_515_008,
    "SmolLM2-360M": 361_821_120,
    "SmolLM2-1.7B": 1_711_376_384,
    "Qwen2.5-Coder-0.5B": 494_032_768,
    "Qwen2.5-Coder-1.5B": 1_543_714_304,
    "Qwen2.5-Coder-3B": 3_085_938_688,
    "Qwen2.5-Coder-7B": 7_615_616_512,
    "Qwen2.5-Coder-14B": 14_770_033_664,
    "Qwen2.5-Coder-32B": 32_763_876_352,
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-1.7B": 1_720_574_976,
    "Qwen3-4B": 4_022_468_096,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-14B": 14_768_307_200,
    "Qwen3-32B": 32_762_123_264,
    "Qwen3-30B-A3B": 30_532_122_624,
    "DeepSeek-V3-671B": 671_026_419_200,
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_published_size_has_the_published_number_of_parameters(name):
    shapes = parameters.abstract(SIZES[name]).values()
    assert sum(math.prod(leaf.shape) for leaf in shapes) == TOTALS[name]


def test_every_size_is_counted():
    assert SIZES.keys() == TOTALS.keys()


@pytest.mark.parametrize("name", TOTALS)
def test_config_json_of_a_size_gives_it_back(name):
    assert hf_config.read(hf_config.write(SIZES[name], "bfloat16")) == SIZES[name]
