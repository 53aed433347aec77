"""Intervals as text are DuckDB's, in and out."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.plan.literals.interval_strings import parse_interval, write
from tests.oracle import connect

AMOUNTS = st.one_of(
    st.integers(-500, 500).map(str), st.decimals(-50, 50, places=3, allow_nan=False).map(lambda d: f"{d:f}")
)
UNITS = st.sampled_from(
    ["year", "quarters", "mon", "week", "days", "h", "minutes", "s", "ms", "us", "decade", "century", "x"]
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(texts=st.lists(st.lists(st.tuples(AMOUNTS, UNITS), min_size=1, max_size=3), min_size=1, max_size=10))
def test_random_texts(texts: list[list[tuple[str, str]]]) -> None:
    with connect() as oracle:
        for parts in texts:
            text = " ".join(f"{amount} {unit}" for amount, unit in parts)
            ours = parse_interval(text)
            try:
                ((theirs,),) = oracle.execute("SELECT CAST(?::INTERVAL AS VARCHAR)", [text]).fetchall()
            except duckdb.Error:
                theirs = None
            assert (None if ours is None else write(*ours)) == theirs, text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 year 2 months 3 days 04:05:06.789", (14, 3, 14_706_789_000)),
        ("-01:00:00.5", (0, 0, -3_600_500_000)),
        ("@ 2 hours ago", (0, 0, -7_200_000_000)),
        ("5", (0, 0, 5_000_000)),
        ("", None),
        ("day", None),
        ("1 day ago ago", None),
        ("1:60", None),
        ("3000000000 days", None),
    ],
)
def test_texts(text: str, parts: tuple[int, int, int] | None) -> None:
    assert parse_interval(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2020-01-01",
            "555-1234",
            "1 12",
            "1 day 1",
            "1day1",
            "1 1 day",
            "1 02:00",
            "02:00 1",
            "1-2",
            "1 ago",
        ),
        *("1 day -1", "1 day 1:00 2 hours", "1 2 3", "1 day 02:00 ago", "1.5 1 day", "1.5.5", "+1", ".5 day"),
        *("1", "-1", "1.5", " 1 ", "@1", "@ 1", "1\t", "2.", "0", "1 day", "1day2hours", "1 day-2 hours"),
        *("1 day1:00", "1 day 1:00", "-1:00", "1. day", "1 day ago", "1.9999999", "1e3", "", "@", "ago"),
    ],
)
def test_numbers_without_units(text: str) -> None:
    with connect() as oracle:
        ((theirs,),) = oracle.execute("SELECT TRY_CAST(? AS INTERVAL)::VARCHAR", [text]).fetchall()
    ours = parse_interval(text)
    assert (None if ours is None else write(*ours)) == theirs


@pytest.mark.parametrize(
    "text",
    [
        *(
            "02:00:00 1 day",
            "1 day 02:00:00 ago",
            "02:00:00.5x",
            "02:00 1 day",
            "1 day 02:00 ago",
            "02:00x",
            "2: x",
        ),
        *("11:", "11:11:", "-1:", "1 day 1:", "1 day 00:00:", "00:00:00.", ":1", "1::", "1:1:1:"),
    ],
)
def test_a_time_of_day_is_the_end(text: str) -> None:
    test_numbers_without_units(text)


def test_nothing_is_a_time() -> None:
    assert write(0, 0, 0) == "00:00:00"
    assert write(-13, 1, -1) == "-1 year -1 month 1 day -00:00:00.000001"
