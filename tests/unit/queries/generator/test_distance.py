import numpy as np
import pytest

from bamquery.queries.generator.distance import LONG_TRIP, Distances
from bamquery.queries.generator.hashing import key, random_words
from bamquery.queries.generator.layout import Layout
from bamquery.queries.generator.permutation import Permutation

ROWS = 200_000


def distances(first: int, last: int, match_share: float | None, rows: int = ROWS) -> np.ndarray:
    layout = Layout(rows, first, last)
    numbers = np.arange(rows, dtype=np.uint64)
    places = layout.places(numbers, random_words(key(1, "time"), numbers))
    ranks = Permutation(rows, 1, "rank").forward(numbers)
    return Distances(layout, match_share).hundredths(numbers, ranks, places)


@pytest.mark.parametrize("share", [0.0, 0.0003, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("years", [(2018, 2018), (2009, 2021)])
def test_the_match_share_is_met(share: float, years: tuple[int, int]) -> None:
    found = np.mean(distances(*years, share) >= LONG_TRIP)
    # Five times the spread of as many independent draws.
    assert abs(found - share) <= 5 * np.sqrt(share * (1 - share) / ROWS) + 1 / ROWS


def test_a_match_share_changes_little_below_thirty_miles() -> None:
    measured, scaled = distances(2018, 2018, None), distances(2018, 2018, 0.2)
    measured, scaled = measured[measured < LONG_TRIP], scaled[scaled < LONG_TRIP]
    for quantile in (0.05, 0.25, 0.5, 0.75, 0.9, 0.99):
        assert abs(np.quantile(scaled, quantile) / np.quantile(measured, quantile) - 1) < 0.03


def test_the_longest_shares_are_resolved_at_any_size() -> None:
    # Of 10^12 rows the rarest hundred: all garbage of hundreds of miles, different from one another.
    rows = 10**12
    layout = Layout(rows, 2020, 2020)
    numbers = np.arange(100, dtype=np.uint64)
    places = layout.places(numbers, random_words(key(1, "time"), numbers))
    ranks = np.uint64(rows - 1) - numbers
    miles = Distances(layout, None).hundredths(numbers, ranks, places) / 100
    assert np.all(np.diff(miles) <= 0)
    assert 200_000 < miles[-1] <= miles[0] <= 260_000


@pytest.mark.parametrize(
    ("year", "zero", "negative"), [(2018, 0.006, 0), (2019, 0.009, 1e-4), (2020, 0.019, 2e-5)]
)
def test_dirt_at_the_stated_rates(year: int, zero: float, negative: float) -> None:
    hundredths = distances(year, year, None)
    assert abs(np.mean(hundredths == 0) - (zero - negative)) < 1e-3
    assert abs(np.sum(hundredths < 0) - negative * ROWS) <= 3
    assert (np.sum(hundredths > 20_000) > 0) == (year == 2020)
