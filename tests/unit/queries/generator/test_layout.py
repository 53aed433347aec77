from datetime import UTC, datetime

import numpy as np
import pytest

from bamquery.queries.generator.hashing import key, random_words
from bamquery.queries.generator.layout import Layout
from bamquery.queries.generator.measured import load_measured
from bamquery.queries.generator.years import TAILS


def test_months_share_the_rows_like_the_real_trips() -> None:
    layout = Layout(1_000_000, 2009, 2021)
    assert len(layout.months) == 13 * 12
    trips = load_measured().trips_by_month
    total = sum(sum(trips[year]) for year in range(2009, 2022))
    for place, (year, month) in enumerate(layout.months):
        wanted = 1_000_000 * trips[year][month - 1] / total
        assert abs(np.diff(layout.first_row)[place] - wanted) <= 1
    assert layout.first_row[-1] == 1_000_000


@pytest.mark.parametrize("rows", [1, 2, 100, 12_345])
def test_few_rows_still_have_places_and_times_in_their_month(rows: int) -> None:
    layout = Layout(rows, 2019, 2020)
    numbers = np.arange(rows, dtype=np.uint64)
    places = layout.places(numbers, random_words(key(1, "time"), numbers))
    hours = layout.hours(places)
    for month, seconds in zip(places.month, layout.seconds(places, hours), strict=True):
        time = datetime.fromtimestamp(int(seconds), UTC)
        assert (time.year, time.month) == layout.months[month]
    kinds = layout.hour_of_week(hours)
    for kind, seconds in zip(kinds, layout.seconds(places, hours), strict=True):
        time = datetime.fromtimestamp(int(seconds), UTC)
        assert kind == time.weekday() * 24 + time.hour


def test_tails_are_the_last_rows_of_their_file() -> None:
    layout = Layout(240_000, 2020, 2020)
    numbers = np.arange(240_000, dtype=np.uint64)
    places = layout.places(numbers, random_words(key(1, "time"), numbers))
    for month in range(12):
        first, last = layout.first_row[month : month + 2]
        in_tail = places.in_tail[first:last]
        assert np.all(places.month[first:last] == month)
        assert np.all(np.diff(in_tail.astype(int)) >= 0)
        assert abs(in_tail.mean() - TAILS[2020][month]) < 1 / (last - first)
