"""Slots without any decoding: every row is drawn once, in order, and prompts make room for others."""

import numpy as np
import pytest

from cudal1_jax.rollout.schedule import IDLE, Schedule, sizes


def play(schedule, chunks_of):
    """Runs every row for its number of chunks: the rows in the order in which they began, and all that was resident."""
    began, prefilled, left = [], [], np.array(chunks_of)
    step = 0
    while schedule.unfinished():
        before = schedule.row.copy()
        prefilled += [prompt for _, prompt in schedule.fill(step)]
        began += schedule.row[schedule.row != before].tolist()
        assert_consistent(schedule, step)
        live = schedule.row[schedule.live]
        left[live] -= 1
        schedule.release(schedule.live & (left[schedule.row] == 0))
        step += 64
    return began, prefilled


def assert_consistent(schedule, step):
    assert schedule.live.any()
    assert np.all(schedule.begin[schedule.live] <= step)
    number, _ = schedule.numbers()
    prompt, place, members = schedule.places()
    for slot in np.flatnonzero(schedule.live):
        assert schedule.resident[prompt[slot]] == number[slot]
        assert members[prompt[slot], place[slot]] == slot
    assert len(set(schedule.row[schedule.live])) == schedule.live.sum()


@pytest.mark.parametrize(
    ("prompts", "group", "slots"), [(1, 1, 8), (1, 8, 8), (5, 3, 1), (5, 3, 4), (9, 2, 7), (4, 8, 64), (3, 16, 5)]
)
def test_every_row_is_drawn_once_in_order_and_every_prompt_prefilled_once(prompts, group, slots):
    chunks = np.random.default_rng(slots).integers(1, 6, prompts * group)
    schedule = Schedule(prompts, group, sizes(prompts, group, slots))
    began, prefilled = play(schedule, chunks)
    assert began == list(range(prompts * group))
    assert prefilled == list(range(prompts))
    assert schedule.ended.all()
    assert not schedule.live.any()


def test_a_slot_is_refilled_when_its_row_ends():
    schedule = Schedule(2, 3, sizes(2, 3, 2))
    assert schedule.fill(0) == [(0, 0)]
    schedule.release(np.array([False, True]))
    assert schedule.fill(64) == []
    assert schedule.row.tolist() == [0, 2]
    assert schedule.begin.tolist() == [0, 64]
    schedule.release(np.array([False, True]))
    assert schedule.fill(128) == [(1, 1)]
    assert schedule.row.tolist() == [0, 3]


def test_a_row_waits_for_room_for_its_prompt():
    schedule = Schedule(4, 1, sizes(4, 1, 1))
    assert schedule.shape.prompt_slots == 3
    schedule.resident[:] = [7, 8, 9]
    assert schedule.fill(0) == []
    assert not schedule.live.any()
    schedule.resident[1] = IDLE
    assert schedule.fill(64) == [(1, 0)]


def test_long_rows_of_a_prompt_let_those_of_the_next_go_on():
    # one row of prompt 0 lasts as long as all others together: it costs no more than its own slot
    chunks = [16] + [2] * 15
    schedule = Schedule(4, 4, sizes(4, 4, 4))
    steps = 0
    left = np.array(chunks)
    while schedule.unfinished():
        schedule.fill(steps)
        left[schedule.row[schedule.live]] -= 1
        schedule.release(schedule.live & (left[schedule.row] == 0))
        steps += 1
    assert steps == 16


@pytest.mark.parametrize(
    ("prompts", "group", "slots", "expected"),
    [(1, 8, 32, (8, 1, 8)), (4, 8, 32, (32, 4, 8)), (16, 8, 32, (32, 6, 8)), (3, 16, 5, (5, 3, 5))],
)
def test_shapes_follow_from_prompts_samples_and_slots(prompts, group, slots, expected):
    shape = sizes(prompts, group, slots)
    assert (shape.slots, shape.prompt_slots, shape.members) == expected
