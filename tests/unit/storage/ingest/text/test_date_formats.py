import datetime

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from bamquery.storage.ingest.text.date_formats import DATES, ISO_INSTANTS, ISO_STAMPS, STAMPS, TIME, format_of

PATTERNS = [format_ for format_ in (*DATES, *STAMPS) if format_.name.startswith("%")]


def read(format_, *texts):
    found = format_.read(pa.array(texts, pa.large_string()))
    return None if found is None else found.to_pylist()


@given(
    st.datetimes(datetime.datetime(1969, 1, 1), datetime.datetime(2068, 12, 31)),
    st.sampled_from(PATTERNS),
)
def test_what_strftime_writes(moment, format_):
    moment = moment.replace(microsecond=0)
    text = moment.strftime(format_.name)
    expected = datetime.datetime.strptime(text, format_.name)
    found = read(format_, None, text, f" {text}  ")
    assert found == [None, *[expected.date() if format_.kind == "date" else expected] * 2]


@pytest.mark.parametrize(
    "text", ["30/02/2000", "29/02/2001", "31/04/2000", "0/1/2000", "1/13/2000", "1/1/0000", "x"]
)
def test_no_days(text):
    assert read(format_of("%d/%m/%Y", "date"), "01/02/2000", text) is None


def test_times():
    assert read(TIME, "9:05", "1:2:3", "23:59:59.5") == [
        datetime.time(9, 5),
        datetime.time(1, 2, 3),
        datetime.time(23, 59, 59, 500_000),
    ]
    for text in ("24:00", "10:60", "10:00:60", "10:00:00.1234567", "10"):
        assert read(TIME, text) is None


def test_the_end_of_a_day():
    assert read(ISO_STAMPS[0], "2000-12-31 24:00") == [datetime.datetime(2001, 1, 1)]
    assert read(ISO_STAMPS[0], "2000-12-31 24:01") is None


ZONED = [
    "2000-03-26 02:30:00 Europe/Berlin",  # left out
    "2000-10-29 02:30:00 Europe/Berlin",  # twice
    "2044-06-29 12:00:00 america/new_york",
    "2044-11-06 01:30:00 America/New_York",
    "2044-03-13 02:30:00 America/New_York",
    "2000-07-01 10:00:00 PST",
    "2000-07-01 10:00 EST",
    "2000-07-01 10:00:00 UTC+5",
    "2000-07-01 10:00:00 GMT-3",
    "2000-07-01 10:00:00+02:30:15",
    "2000-07-01T10:00:00.5-0100",
    "2000-07-01T10:00:00Z",
    "2000-07-01 10:00:00 UTC",
    "2000-07-01 10:00:00",
]


def test_zones():
    """As in DuckDB, where a time comes twice, and where it does not come at all."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        expected = [
            connection.execute("SELECT epoch_us(?::TIMESTAMPTZ)", [text]).fetchone()[0] for text in ZONED
        ]
    found = ISO_INSTANTS[0].read(pa.array([*ZONED, None], pa.large_string()))
    assert found.cast(pa.int64()).to_pylist() == [*expected, None]


@pytest.mark.parametrize("zone", ["CEST", "foo", "UTC+", "localtime"])
def test_no_zones(zone):
    assert read(ISO_INSTANTS[0], f"2000-07-01 10:00:00 {zone}") is None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("%Y%m%d", "20000131", datetime.datetime(2000, 1, 31)),
        ("%b %d %Y", "jan  5 2000", datetime.datetime(2000, 1, 5)),
        ("%a, %-d %B %y", "Wed, 5 January 00", datetime.datetime(2000, 1, 5)),
        ("%Y-%m", "2000-03", datetime.datetime(2000, 3, 1)),
        ("%d.%m.%Y %Hh%M", "5.1.2000 10h30", datetime.datetime(2000, 1, 5, 10, 30)),
        ("%Y-%m-%d %I:%M %p", "2000-01-05 12:30 am", datetime.datetime(2000, 1, 5, 0, 30)),
        (
            "%Y-%m-%d %H:%M:%S.%f %z",
            "2000-01-05 10:00:00.25 +0230",
            datetime.datetime(2000, 1, 5, 7, 30, 0, 250_000),
        ),
        ("100%% %Y", "100% 2000", datetime.datetime(2000, 1, 1)),
    ],
)
def test_formats_that_are_given(pattern, text, expected):
    assert read(format_of(pattern, "timestamp"), text, None) == [expected, None]
    assert read(format_of(pattern, "timestamp"), text + "x") is None


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("%q", "%q is not understood: there are %Y"),
        ("%", "% is not understood"),
        ("", "no part of a date"),
        ("100%%", "no part of a date"),
        ("%Y %Y", "%Y comes twice"),
        ("%Y %y", "say the same"),
        ("%I:%M", "%I is nothing without %p"),
    ],
)
def test_formats_that_are_none(pattern, message):
    with pytest.raises(ValueError, match=message):
        format_of(pattern, "date")
