"""Texts as dates, times and timestamps: DuckDB's readings, one by one."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from bamquery.plan.literals.conversion import convert
from bamquery.plan.literals.time_zones import offset_seconds
from tests.oracle import connect, plain
from tests.sql.randomized.casts.extremes import TYPES
from tests.sql.randomized.casts.strings import DATES, MOMENTS, TIMES, ZONES

_TYPES = (
    "DATE",
    "TIME",
    "TIME_NS",
    "TIMESTAMP",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMPTZ",
)
_GMT = (
    "GMT+5:30",
    "GMT+0530",
    "GMT+530",
    "GMT+23:59",
    "GMT+24",
    "GMT+010203",
    "GMT5",
    "UTC-5",
    "utc+5",
    "PST",
)
_INFINITE = 2**31 - 1, 2**63 - 1
_TEXTS = sorted(
    {
        *DATES,
        *TIMES,
        *MOMENTS,
        *(f"2020-06-01 12:00:00{zone}" for zone in ZONES),
        *(f"2020-06-01 12:00:00 {zone}" for zone in _GMT),
        *("2020-03-29 02:30:00 Europe/Berlin", "2020-10-25 02:30:00 Europe/Berlin"),
        *("1850-01-01 00:00:00 Europe/Berlin", "12020-07-01 00:00:00 Europe/Berlin"),
        *("0044-03-15 (BC) 00:00:00 Asia/Tokyo", "2020-01-02 03:04 UTC", "2020-01-02 UTC", "2020-01-02Z"),
        *("294247-01-10 05:00:54.775806+01", "290309-12-22 (BC) 00:00:00+01", "294247-01-10 04:00:54+01"),
        *("11:11:11x", "11:11:11 x", "11:11 ", "001:00", "0011:00:00", "\t11:11\n", "11:11+01", "11/11/11"),
        *(
            "2020-01-01\t11:00",
            "2020-01-01 11:00\n",
            "2020-01-01 11:00 \n",
            "2020-01-01 001:00",
            "2020-01-01T",
        ),
    }
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.mark.parametrize("name", _TYPES)
def test_what_a_text_means(name: str, oracle: duckdb.DuckDBPyConnection) -> None:
    oracle.register("given", pa.table({"x": _TEXTS}))
    theirs = plain(oracle.sql(f"SELECT TRY_CAST(x AS {name}) FROM given").to_arrow_table().column(0))
    for text, other in zip(_TEXTS, theirs, strict=True):
        try:
            ours = plain(pa.array([convert(pa.scalar(text, pa.large_string()), TYPES[name])], TYPES[name]))[0]
        except ValueError:
            ours = None
        assert ours == other or (other is not None and abs(other) in _INFINITE), text


def test_zones_without_summer_time_have_one_offset() -> None:
    assert offset_seconds("Asia/Tokyo", 10**9) == 9 * 3600
    assert offset_seconds("asia/TOKYO", 10**9) == 9 * 3600
    assert offset_seconds("Asia/Nowhere", 10**9) is None
    assert offset_seconds("localtime", 10**9) is None


def test_rules_of_zones_go_on_for_ever() -> None:
    summer, cycle = 1_593_561_600, 146_097 * 86_400  # 2020-07-01
    assert offset_seconds("Europe/Berlin", summer + 700 * cycle) == 7200
    assert offset_seconds("Europe/Berlin", summer - 700 * cycle) == 3208
