"""Malformed inputs of every kind end as they may, and leave nothing behind.

The slow test is the whole campaign; what was found by it and mended has a test of its own beside the code.
"""

import gc
import pathlib
import random
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HERE = pathlib.Path(__file__).parent
EXAMPLES = {
    "completions": 25,
    "programs": 12,
    "CUDA texts": 6,
    "plans": 100,
    "tapes": 80,
    "judged programs": 5,
    "texts for NVRTC": 10,
}


@pytest.fixture(scope="module")
def campaign():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import campaign

        yield campaign


@pytest.fixture(scope="module")
def targets(campaign, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        from targets import targets

        gc.collect()  # what earlier tests left is not counted
        before = campaign.state()
        with targets() as known:
            assert set(known) | {"texts for NVRTC"} == set(EXAMPLES) == set(campaign.SHARES)
            yield known
        after = campaign.state()
        assert after.processes <= before.processes
        assert after.descriptors <= before.descriptors


@pytest.mark.parametrize("kind", EXAMPLES)
def test_malformed_inputs_end_as_they_may(targets, campaign, kind):
    endings = []
    if kind not in targets:
        pytest.skip("no NVRTC: pip install 'cudal1-jax[dev]'")

    @settings(
        max_examples=EXAMPLES[kind],
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.integers(0, 2**32))
    def feed(seed):
        with campaign.cpu_deadline():
            endings.append(targets[kind](random.Random(seed)))

    feed()
    assert len(endings) >= EXAMPLES[kind] // 2


def test_a_broken_ending_is_reported_with_the_input_that_made_it(campaign):
    def fails(rng):
        raise KeyError("a bug")

    problems = []
    run = campaign.Campaign(inputs=1, seed=7)
    assert run._one(fails, "plans", 3, problems) == "BROKEN KeyError"
    assert problems == ["7/plans/3: KeyError: 'a bug'"]


def test_an_input_that_hangs_is_reported(campaign):
    def hangs(rng):
        with campaign.cpu_deadline(0.05):
            while True:
                pass

    problems = []
    assert campaign.Campaign(inputs=1, seed=7)._one(hangs, "plans", 3, problems) == "BROKEN Hang"
    assert "still computing" in problems[0]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_thousand_malformed_inputs():
    run = subprocess.run(
        [sys.executable, str(HERE / "campaign.py"), "--inputs=20000"], capture_output=True, text=True, check=False
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
