import collections
import math

import numpy as np
import pytest

from cudal1_jax.contrastive import exemplars
from cudal1_jax.contrastive.exemplars import Exemplar
from cudal1_jax.contrastive.records import Judged
from evaluator.program.identity import sha256
from evaluator.records import Interval, Outcome


def programs(*speedups):
    return [Exemplar(f"p{i}", Interval(s, s, s), sha256(f"p{i}")) for i, s in enumerate(speedups)]


def draws(select, pool, count, times=4000):
    return [tuple(e.program for e in select(pool, count, np.random.default_rng(seed))) for seed in range(times)]


def bucket(pool, count, rng, temperature=1.0, bucket_width=0.5):
    return exemplars.bucket(pool, count, rng, bucket_width=bucket_width, temperature=temperature)


def test_bucket_frequencies_match_the_softmax_of_bucket_means_worked_by_hand():
    # buckets [1, 1.5): {1.1, 1.3}, mean 1.2, and [2, 2.5): {2.2}: P(fast) = 1 / (1 + exp(-(2.2 - 1.2))) = 0.731;
    # a softmax over programs instead of buckets would give the slow bucket two votes
    counts = collections.Counter(draw[0] for draw in draws(bucket, programs(1.1, 1.3, 2.2), 1))
    fast = 1 / (1 + math.exp(-1.0))
    assert counts["p2"] / 4000 == pytest.approx(fast, abs=0.03)
    assert counts["p0"] / 4000 == pytest.approx((1 - fast) / 2, abs=0.03)


def test_bucket_never_shows_two_programs_of_one_bucket():
    pool = programs(1.0, 1.1, 1.2, 2.0, 2.1)
    for shown in draws(bucket, pool, 2, times=200):
        assert len({int(int(name[1:]) >= 3) for name in shown}) == len(shown) == 2


def test_bucket_edges_belong_to_the_bucket_above():
    shown = draws(bucket, programs(1.4999, 1.5), 2, times=20)
    assert all(len(draw) == 2 for draw in shown)


def test_bucket_shows_fewer_where_there_are_fewer_buckets_and_none_from_an_empty_store():
    rng = np.random.default_rng(0)
    assert len(bucket(programs(1.0, 1.1), 2, rng)) == 1
    assert bucket([], 2, rng) == []


def test_a_low_temperature_chooses_the_fastest_bucket_without_overflow():
    assert {
        draw[0] for draw in draws(lambda p, c, r: bucket(p, c, r, temperature=1e-4), programs(1.0, 90.0), 1, 50)
    } == {"p1"}


def test_a_very_low_temperature_can_still_fill_every_place():
    assert len(bucket(programs(1.0, 90.0), 2, np.random.default_rng(0), temperature=1e-4)) == 2


def test_best_is_the_fastest_first():
    chosen = exemplars.best(programs(1.0, 3.0, 2.0), 2, np.random.default_rng(0))
    assert [e.program for e in chosen] == ["p1", "p2"]


def test_random_is_uniform_and_never_repeats():
    shown = draws(exemplars.random, programs(1.0, 1.0, 9.0), 2)
    assert all(len(set(draw)) == 2 for draw in shown)
    counts = collections.Counter(name for draw in shown for name in draw)
    assert all(count / 8000 == pytest.approx(1 / 3, abs=0.03) for count in counts.values())
    assert exemplars.random([], 2, np.random.default_rng(0)) == []


def test_island_shows_programs_of_one_island_only():
    pool = programs(*np.linspace(1, 2, 12))
    home = {e.program: int(e.sha256[:8], 16) % 3 for e in pool}
    seen = set()
    for shown in draws(lambda p, c, r: exemplars.island(p, c, r, islands=3, temperature=1.0), pool, 2, 200):
        assert len({home[name] for name in shown}) == 1
        seen.add(home[shown[0]])
    assert seen == set(home.values())
    assert exemplars.island([], 2, np.random.default_rng(0), islands=3, temperature=1.0) == []


def test_the_same_generator_draws_the_same_exemplars():
    pool = programs(1.0, 1.6, 2.2, 2.8)
    for name in ("bucket", "island", "random", "best", "none"):
        select = exemplars.build(name, bucket_width=0.5, temperature=1.0, islands=2)
        assert select(pool, 2, np.random.default_rng(7)) == select(pool, 2, np.random.default_rng(7))


def test_an_unknown_policy_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="'fittest' does not exist: choose bucket, island, random, best or none"):
        exemplars.build("fittest", bucket_width=0.5, temperature=1.0, islands=2)


def judged(sample, program, verdict, task="1_019"):
    return Judged(step=0, sample=sample, task=task, program=program, name="", verdict=verdict)


def test_pool_holds_distinct_right_programs_of_the_task_with_their_median_interval(verdict):
    entries = [
        judged(0, "a", verdict("a", 1.0)),
        judged(1, "a", verdict("a", 3.0)),
        judged(2, "a", verdict("a", 1.2)),
        judged(3, "b", verdict("b", None, Outcome.WRONG_VALUE)),
        judged(4, "c", verdict("c", 2.0, task="1_023"), task="1_023"),
    ]
    found = exemplars.pool(entries, "1_019")
    assert [(e.program, e.speedup.value) for e in found] == [("a", 1.2)]
