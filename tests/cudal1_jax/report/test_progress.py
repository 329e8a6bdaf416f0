import time

import pytest

from cudal1_jax.report import progress


@pytest.fixture
def last_line(capsys):
    """What a person sees of a bar at its end."""
    return lambda: capsys.readouterr().err.split("\r")[-1]


def test_items_pass_through_a_bar_that_counts_them(last_line):
    assert list(progress.track(iter("abc"), "judging", 3, "program")) == ["a", "b", "c"]
    last = last_line()
    assert last.startswith("judging")
    assert "3/3" in last
    assert "program/s" in last


def test_a_bar_of_silent_work_is_full_when_the_work_is_done(last_line):
    pace = progress.Pace("updating", "token")
    with pace.working(500):
        pass
    assert "500/500" in last_line()


def test_a_bar_of_silent_work_moves_at_the_pace_of_the_last_time_and_never_overtakes_it(monkeypatch):
    monkeypatch.setattr(progress, "TICK_S", 0.005)
    pace = progress.Pace("updating", "token")
    pace._s_per_unit = 1e-3
    bars = []
    real = progress.bar
    monkeypatch.setattr(progress, "bar", lambda *arguments: bars.append(real(*arguments)) or bars[-1])
    with pace.working(1_000_000):
        deadline = time.monotonic() + 20
        while bars[0].n == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert 0 < bars[0].n < 1_000_000
    with pace.working(1):
        time.sleep(0.05)
        assert bars[1].n == 0


def test_work_that_fails_leaves_its_bar_where_it_was(last_line):
    with pytest.raises(RuntimeError, match="lost"), progress.Pace("updating", "token").working(9):
        raise RuntimeError("lost")
    assert "0/9" in last_line()
