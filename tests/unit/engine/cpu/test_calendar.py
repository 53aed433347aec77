"""The calendar asked about many days at once gives what it gives for each."""

from __future__ import annotations

import numpy as np
import pytest

from bamquery.engine.cpu.calendar import (
    CALENDAR,
    Integers,
    first_day_of_month,
    memoize_dense,
    months_of,
    remainder,
)

NEAR = np.arange(-400, 20_000) % 3653 - 1000
FAR = np.linspace(-(2**40), 2**40, 5000).astype(np.int64)


@pytest.mark.parametrize("part", sorted(CALENDAR.parts))
def test_parts_of_many_days(part: str) -> None:
    of_day = CALENDAR.parts[part]
    few = np.concatenate([of_day(days) for days in np.array_split(NEAR, 20)])
    assert (memoize_dense(of_day)(NEAR) == few).all()


@pytest.mark.parametrize("days", [NEAR, NEAR[:0], NEAR[:7], np.full(2000, -5), FAR // 2**24], ids=len)
def test_months_and_back(days: Integers) -> None:
    months = months_of(days)
    assert (months == days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)).all()
    assert (first_day_of_month(months) <= days).all()
    assert (first_day_of_month(months + 1) > days).all()


def test_numbers_that_lie_close_are_asked_once() -> None:
    asked: list[int] = []

    @memoize_dense
    def doubled(values: Integers) -> Integers:
        asked.append(len(values))
        return values * 2

    for values in (NEAR, FAR, NEAR[:1000]):
        assert (doubled(values) == values * 2).all()
    assert asked == [3653, len(FAR), 1000]


@pytest.mark.parametrize("divisor", [1, 7, 24, 86_400_000_000])
def test_remainder(divisor: int) -> None:
    values = np.concatenate([FAR, NEAR, [np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1]])
    assert (remainder(values, divisor) == values % divisor).all()
