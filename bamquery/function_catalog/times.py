"""Scalar functions of dates, times, timestamps and intervals."""

from __future__ import annotations

from typing import Final

from bamquery.function_catalog.contract import (
    CPU_ONLY,
    OF_INTERVALS,
    PYTHON,
    WITH_ERRORS,
    FunctionContract,
)
from bamquery.function_catalog.entry import Entry, Section

_OF_DATE: Final = "(x DATE) -> {0} | (x TIMESTAMP) -> {0}"
_OF_CLOCK: Final = "(x TIME) -> {0} | (x TIMESTAMP) -> {0}"
_PART: Final = f"{_OF_DATE.format('BIGINT')} | (x INTERVAL) -> BIGINT"
_DAY_PART: Final = _OF_DATE.format("BIGINT")
_CLOCK: Final = f"{_OF_CLOCK.format('BIGINT')} | (x INTERVAL) -> BIGINT"
_BETWEEN: Final = (
    "(part VARCHAR, a DATE, b DATE) -> BIGINT | (part VARCHAR, a TIMESTAMP, b TIMESTAMP) -> BIGINT"
    " | (part VARCHAR, a TIME, b TIME) -> BIGINT"
)
_PARTS: Final = "date_part interval_part"
_INTEGER_TO_INTERVAL: Final = "(n INTEGER) -> INTERVAL"
_BIGINT_TO_INTERVAL: Final = "(n BIGINT) -> INTERVAL"
_DOUBLE_TO_INTERVAL: Final = "(x DOUBLE) -> INTERVAL"

SECTION: Final = Section(
    "Dates and times",
    "scalar",
    (
        Entry(
            "date_part datepart",
            "(part VARCHAR, x TEMPORAL) -> BIGINT",
            "A part (a constant) of a date, time, timestamp or interval; of `epoch` a DOUBLE.",
            FunctionContract(
                "date_part(unit literal, x) as int64; units: year quarter month day hour minute second"
                " dayofweek (Sunday 0) isodow (Monday 1) dayofyear week (ISO) isoyear yearweek decade century"
                " millennium era; millisecond microsecond nanosecond, counted from the minute"
            ),
            calls=_PARTS,
            example="date_part('year', DATE '2024-05-17')",
        ),
        Entry("year", _PART, "The year.", calls=_PARTS),
        Entry("quarter", _PART, "The quarter of the year, from 1.", calls=_PARTS),
        Entry("month", _PART, "The month of the year, from 1.", calls=_PARTS),
        Entry("day dayofmonth", _PART, "The day of the month, from 1.", calls=_PARTS),
        Entry("dayofyear", _DAY_PART, "The day of the year, from 1.", calls="date_part"),
        Entry("hour", _CLOCK, "The hour of the day, from 0.", calls=_PARTS),
        Entry("minute", _CLOCK, "The minute of the hour, from 0.", calls=_PARTS),
        Entry("second", _CLOCK, "The second of the minute, from 0.", calls=_PARTS),
        Entry("millisecond", _CLOCK, "Milliseconds since the minute began.", calls=_PARTS),
        Entry("microsecond", _CLOCK, "Microseconds since the minute began.", calls=_PARTS),
        Entry(
            "nanosecond", _OF_CLOCK.format("BIGINT"), "Nanoseconds since the minute began.", calls="date_part"
        ),
        Entry(
            "dayofweek weekday", _DAY_PART, "The day of the week: Sunday is 0, Saturday 6.", calls="date_part"
        ),
        Entry("isodow", _DAY_PART, "The day of the week: Monday is 1, Sunday 7.", calls="date_part"),
        Entry(
            "week weekofyear",
            _DAY_PART,
            "The week of ISO 8601: the first one has the year's first Thursday.",
            calls="date_part",
        ),
        Entry("isoyear", _DAY_PART, "The year that the week of ISO 8601 belongs to.", calls="date_part"),
        Entry("yearweek", _DAY_PART, "isoyear * 100 + week.", calls="date_part"),
        Entry("decade", _PART, "The year without its last digit.", calls=_PARTS),
        Entry("century", _PART, "The century: 2000 is in the 20th, 2001 in the 21st.", calls=_PARTS),
        Entry("millennium", _PART, "The millennium: 2000 is in the 2nd, 2001 in the 3rd.", calls=_PARTS),
        Entry("era", _DAY_PART, "1, or 0 before the year 1.", calls="date_part"),
        Entry("julian", _OF_DATE.format("DOUBLE"), "Days since 24 November 4714 BC."),
        Entry("dayname", _OF_DATE.format("VARCHAR"), "The day of the week, in English."),
        Entry("monthname", _OF_DATE.format("VARCHAR"), "The month, in English."),
        Entry(
            "date_trunc datetrunc",
            "(part VARCHAR, x DATE) -> TIMESTAMP | (part VARCHAR, x TIMESTAMP) -> TIMESTAMP"
            " | (part VARCHAR, x INTERVAL) -> INTERVAL",
            "When the part (a constant) began that a moment is in; an interval without what is smaller.",
            FunctionContract("to x's type; units as of date_part, weeks start on Monday"),
            calls="date_trunc interval_trunc",
            example="date_trunc('month', TIMESTAMP '2024-05-17 10:30:00')",
        ),
        Entry(
            "date_diff datediff",
            _BETWEEN,
            "How many parts (a constant) begin between two moments.",
            FunctionContract("date_diff(a, b, unit literal): of one type; weeks are whole ones"),
            example="date_diff('month', DATE '2024-01-31', DATE '2024-02-01')",
        ),
        Entry(
            "date_sub datesub",
            _BETWEEN,
            "How many whole parts (a constant) lie between two moments.",
            CPU_ONLY.with_text("date_sub(a, b, unit literal): both time(us) or timestamp(us)"),
            example="date_sub('month', DATE '2024-01-31', DATE '2024-02-01')",
        ),
        Entry(
            "date_add",
            "(x DATE, interval INTERVAL) -> TIMESTAMP | (x TIMESTAMP, interval INTERVAL) -> TIMESTAMP",
            "x + interval.",
            calls="add_interval add_days",
        ),
        Entry(
            "age",
            "(b TIMESTAMP) -> INTERVAL | (a TIMESTAMP, b TIMESTAMP) -> INTERVAL",
            "Months, days and time from b to a, or to today.",
            OF_INTERVALS,
            call="age([a,] b)",
        ),
        Entry(
            "time_bucket",
            "(width INTERVAL, x DATE [, origin DATE]) -> DATE"
            " | (width INTERVAL, x TIMESTAMP [, origin TIMESTAMP]) -> TIMESTAMP",
            "When the bucket of that width began; they count from 3 January 2000, or an origin or offset.",
            OF_INTERVALS.with_text("x and origin: timestamp(us)"),
            calls="time_bucket add_interval subtract_interval",
            example="time_bucket(INTERVAL '2 hours', TIMESTAMP '2024-05-17 11:30:00')",
        ),
        Entry("last_day", _OF_DATE.format("DATE"), "The last day of the month."),
        Entry(
            "epoch",
            f"{_OF_DATE.format('DOUBLE')} | (x TIME) -> DOUBLE",
            "Seconds since 1970, or midnight.",
            FunctionContract(),
            calls="epoch interval_seconds to_count divide",
        ),
        Entry(
            "epoch_ms",
            _OF_DATE.format("BIGINT"),
            "Milliseconds since 1970, or midnight.",
            calls="to_count interval_milliseconds days_between multiply",
        ),
        Entry(
            "epoch_us",
            _OF_DATE.format("BIGINT"),
            "Microseconds since 1970, or midnight.",
            calls="to_count interval_microseconds",
        ),
        Entry(
            "epoch_ns",
            _OF_DATE.format("BIGINT"),
            "Nanoseconds since 1970, or midnight.",
            calls="to_count interval_microseconds multiply",
        ),
        Entry(
            "make_date",
            "(year BIGINT, month BIGINT, day BIGINT) -> DATE | (days INTEGER) -> DATE",
            "The date of year, month and day, or so many days after 1 January 1970; others are an error.",
            WITH_ERRORS,
            calls="make_date add_days",
            example="make_date(2024, 5, 17)",
        ),
        Entry(
            "make_time",
            "(hour BIGINT, minute BIGINT, second DOUBLE) -> TIME",
            "The time of day; others are an error.",
            WITH_ERRORS,
        ),
        Entry(
            "make_timestamp",
            "(year BIGINT, month BIGINT, day BIGINT, hour BIGINT, minute BIGINT, second DOUBLE) -> TIMESTAMP"
            " | (microseconds BIGINT) -> TIMESTAMP",
            "The timestamp of these parts, or so many microseconds after 1970 began.",
            WITH_ERRORS,
            calls="make_timestamp from_count",
        ),
        Entry(
            "make_timestamp_ms",
            "(n BIGINT) -> TIMESTAMP",
            "n milliseconds after 1970 began.",
            calls="from_count",
        ),
        Entry(
            "make_timestamp_ns",
            "(n BIGINT) -> TIMESTAMP_NS",
            "n nanoseconds after 1970 began.",
            calls="from_count",
        ),
        Entry(
            "to_timestamp",
            "(seconds DOUBLE) -> TIMESTAMP WITH TIME ZONE",
            "So many seconds after 1970 began.",
            WITH_ERRORS,
            calls="from_seconds",
        ),
        Entry(
            "strftime",
            "(x DATE, pattern VARCHAR) -> VARCHAR | (x TIMESTAMP, pattern VARCHAR) -> VARCHAR",
            "A moment as text, written as a pattern of %Y, %m, %d and the like says.",
            CPU_ONLY,
            example="strftime(DATE '2024-05-17', '%d.%m.%Y')",
        ),
        Entry(
            "strptime",
            "(text VARCHAR, pattern VARCHAR) -> TIMESTAMP",
            "The timestamp that a text means by a pattern of %Y, %m, %d and the like; an error if unfit.",
            PYTHON,
            example="strptime('17.05.2024', '%d.%m.%Y')",
        ),
        Entry(
            "try_strptime",
            "(text VARCHAR, pattern VARCHAR) -> TIMESTAMP",
            "As strptime, but NULL where the text does not fit.",
            PYTHON,
        ),
        Entry(
            "now get_current_timestamp transaction_timestamp",
            "() -> TIMESTAMP WITH TIME ZONE",
            "When the query runs; the same throughout it.",
        ),
        Entry(
            "current_timestamp",
            "() -> TIMESTAMP WITH TIME ZONE",
            "As now(), without parentheses.",
            calls="now",
            call="current_timestamp",
        ),
        Entry("today", "() -> DATE", "The date on which the query runs, in UTC.", calls="now"),
        Entry(
            "current_date", "() -> DATE", "As today(), without parentheses.", calls="now", call="current_date"
        ),
        Entry(
            "localtimestamp",
            "() -> TIMESTAMP",
            "When the query runs, without a zone, in UTC.",
            calls="now",
            call="localtimestamp",
        ),
        Entry("current_localtimestamp", "() -> TIMESTAMP", "As localtimestamp.", calls="now"),
        Entry(
            "localtime",
            "() -> TIME",
            "The time at which the query runs, in UTC.",
            calls="now",
            call="localtime",
        ),
        Entry("current_localtime", "() -> TIME", "As localtime.", calls="now"),
        Entry("to_years", _INTEGER_TO_INTERVAL, "An interval of n years.", calls="to_interval"),
        Entry("to_quarters", _INTEGER_TO_INTERVAL, "An interval of n quarters.", calls="to_interval"),
        Entry("to_months", _INTEGER_TO_INTERVAL, "An interval of n months.", calls="to_interval"),
        Entry("to_weeks", _INTEGER_TO_INTERVAL, "An interval of n weeks.", calls="to_interval"),
        Entry("to_days", _INTEGER_TO_INTERVAL, "An interval of n days.", calls="to_interval"),
        Entry("to_hours", _BIGINT_TO_INTERVAL, "An interval of n hours.", calls="to_interval"),
        Entry("to_minutes", _BIGINT_TO_INTERVAL, "An interval of n minutes.", calls="to_interval"),
        Entry("to_seconds", _DOUBLE_TO_INTERVAL, "An interval of x seconds.", calls="to_interval"),
        Entry("to_milliseconds", _DOUBLE_TO_INTERVAL, "An interval of x milliseconds.", calls="to_interval"),
        Entry("to_microseconds", _BIGINT_TO_INTERVAL, "An interval of n microseconds.", calls="to_interval"),
        Entry("to_decades", _INTEGER_TO_INTERVAL, "An interval of n decades.", calls="to_interval"),
        Entry("to_centuries", _INTEGER_TO_INTERVAL, "An interval of n centuries.", calls="to_interval"),
        Entry("to_millennia", _INTEGER_TO_INTERVAL, "An interval of n millennia.", calls="to_interval"),
        Entry(
            "normalized_interval",
            "(x INTERVAL) -> INTERVAL",
            "The interval with 30 days as a month and 24 hours as a day.",
            OF_INTERVALS,
            calls="interval_normalize",
        ),
    ),
    notes="Parts of a date have DuckDB's names: `year` `quarter` `month` `week` `day` `hour` `minute`\n"
    "`second` `millisecond` `microsecond` `decade` `century` `millennium`, their plurals and short\n"
    "forms, `dow` `isodow` `doy` `isoyear` `yearweek` `era` `epoch` `julian`.",
)
