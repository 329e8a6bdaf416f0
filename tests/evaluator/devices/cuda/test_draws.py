"""The device's random numbers, drawn on the emulator: the published stream, its distributions, alike in every place."""

from pathlib import Path

import numpy as np
import pytest

from evaluator.devices import cuda

SOURCE = Path(cuda.__file__).with_name("draws.cu").read_text()
KEY = np.uint64(0x0123456789ABCDEF)
RAW = """
extern "C" __global__ void words(unsigned* out, unsigned long long key, unsigned long long block, unsigned call) {
  for (int k = 0; k < 4; ++k) out[k] = philox(key, block, call).w[k];
}
"""


def philox(key, counter):
    """The definition, in plain integers."""
    k, c = [int(key) & 0xFFFFFFFF, int(key) >> 32], list(counter)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@pytest.fixture
def drawn(outputs_of, out):
    def draw(name, count, *arguments, key=KEY, call=0, blocks=3):
        dtype = "int64" if name == "integers" else "float32"
        given = [out((count,), dtype), count, key, np.uint32(call), *arguments]
        return outputs_of(SOURCE, given, kernel=name, grid=(blocks,), block=(256,))[0]

    return draw


def test_the_definition_gives_the_published_words():
    assert philox(0, [0, 0, 0, 0]) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(2**64 - 1, [2**32 - 1] * 4) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize(("block", "call"), [(0, 0), (1, 0), (2**33 + 5, 7)])
def test_words_are_those_of_the_definition(outputs_of, out, block, call):
    arguments = [out((4,), "uint32"), KEY, np.uint64(block), np.uint32(call)]
    (words,) = outputs_of(SOURCE + RAW, arguments, kernel="words", grid=(1,), block=(1,))
    assert words.tolist() == philox(KEY, [block & 0xFFFFFFFF, block >> 32, call, 0])


@pytest.mark.parametrize("count", [1, 3, 4, 1021, 5000])
def test_a_place_has_its_number_whatever_the_launch(drawn, count):
    whole = drawn("uniform", 5000, blocks=1)
    np.testing.assert_array_equal(drawn("uniform", count, blocks=2), whole[:count])


def test_keys_and_calls_give_other_numbers(drawn):
    seen = [drawn("normal", 64), drawn("normal", 64, call=1), drawn("normal", 64, key=np.uint64(5))]
    assert len({array.tobytes() for array in seen}) == 3


def test_uniform_numbers_fill_the_unit_interval_evenly(drawn):
    x = drawn("uniform", 40_000)
    assert x.min() >= 0
    assert x.max() < 1
    counts, _ = np.histogram(x, bins=20, range=(0, 1))
    assert ((counts - 2000) ** 2 / 2000).sum() < 45  # chi-squared with 19 degrees of freedom: 1 in 1,000


def test_normal_numbers_have_the_moments_and_tails_of_one(drawn):
    x = drawn("normal", 40_000).astype(np.float64)
    assert np.isfinite(x).all()
    moments = [x.mean(), x.var(), (x**3).mean(), (x**4).mean()]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.12)
    assert abs(np.mean(np.abs(x) > 1.96) - 0.05) < 0.005
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.02


def test_integers_fall_on_every_value_of_the_range(drawn):
    x = drawn("integers", 7000, np.int64(-3), np.uint32(7))
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert ((counts - 1000) ** 2 / 1000).sum() < 23  # 6 degrees of freedom: 1 in 1,000


def test_nvrtc_takes_the_text(compiler):
    assert compiler.compile(SOURCE, "draws.cu", ["-arch=sm_90", "-std=c++17"], []).cubin


@pytest.mark.parametrize("count", [1, 3, 4, 1021])
def test_floats_move_by_one_spacing_up_or_down_at_random(outputs_of, out, count):
    x = np.linspace(1.0, 2.0, count + 2, dtype=np.float32)[1:-1]
    launch = {"kernel": "moved", "grid": (3,), "block": (256,)}
    once, again = (
        outputs_of(SOURCE, [x, out((count,), "float32"), count, key], **launch)[0] for key in (KEY, np.uint64(5))
    )
    steps = once.view(np.int32) - x.view(np.int32)
    assert set(np.abs(steps)) <= {1, 2}  # of the larger of two neighbouring spacings
    if count > 100:
        assert 0.4 < (steps > 0).mean() < 0.6
        assert 0.4 < (once == again).mean() < 0.6
