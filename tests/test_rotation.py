import datetime

from tests.conftest import of_today

NAMES = [f"test_a_program_compiles[{number}-plain]" for number in range(300)]
START = datetime.date(2026, 12, 28)  # the ten days after it cross a year


def test_each_name_runs_on_one_of_ten_days_in_a_row():
    days = [START + datetime.timedelta(days=day) for day in range(10)]
    assert all(sum(of_today(name, day) for day in days) == 1 for name in NAMES)


def test_a_day_runs_about_a_tenth():
    assert 15 <= sum(of_today(name, START) for name in NAMES) <= 45
