"""Answers of calls that are known to differ from DuckDB's, and why; docs/sql.md has each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tests.sql.random_casts.compare import Difference

Test = Callable[[str, str, str, str], bool]
"""Of the function's name, the call, our answer and the other one as texts."""

_OF_INTERVALS: Final = "INTERVAL of more than 292 years in its time, or of 2^31 months or days: refused"
_OF_DAYS: Final = "week, isoyear and the like of days whose year's or week's beginning is no DATE: an answer"
_BEYOND_NANOSECONDS: Final = (
    "nanosecond, strftime of a TIMESTAMP_S or TIMESTAMP_MS beyond TIMESTAMP_NS: an answer"
)
_OF_ZONES: Final = "parts of a TIMESTAMPTZ before the year 1: with the sign, as of a TIMESTAMP"
_INFINITE: Final = "infinite dates: refused"
_MIXED: Final = "greatest and least of intervals: as < compares them"

_HUGEINT: Final = "HUGEINT of 39 digits: an overflow"
_ZERO: Final = "round(NULL, n) of a DECIMAL that has fewer digits than n: NULL"
_CALENDAR: Final = "date_diff of TIMESTAMPTZ as far apart as BIGINT allows: an answer"
_NULL_BESIDE: Final = "date_sub of a DATE that is no TIMESTAMP, beside NULL: an error, as beside a DATE"

_KNOWN: Final[tuple[tuple[str, Test], ...]] = (
    (_OF_INTERVALS, lambda name, sql, ours, theirs: "INTERVAL overflow" in ours),
    (
        _OF_DAYS,
        lambda name, sql, ours, theirs: (
            bool(re.search(r"Date out of range: -58776\d\d-", theirs)) and "Error" not in ours
        ),
    ),
    (
        _BEYOND_NANOSECONDS,
        lambda name, sql, ours, theirs: (
            "Could not convert Timestamp to higher precision" in theirs and "Error" not in ours
        ),
    ),
    (
        _OF_ZONES,
        lambda name, sql, ours, theirs: (
            "timestamptz" in sql.lower() and ours.startswith("-") and ours[1:] == theirs
        ),
    ),
    (_INFINITE, lambda name, sql, ours, theirs: name == "make_date" and "DATE overflow" in ours),
    (_HUGEINT, lambda name, sql, ours, theirs: "DECIMAL(38,0) overflow" in ours),
    (_ZERO, lambda name, sql, ours, theirs: name == "round" and ours == "None" and theirs == "0"),
    (
        _CALENDAR,
        lambda name, sql, ours, theirs: name.startswith("date") and "timestamp out of range" in theirs,
    ),
    (
        _NULL_BESIDE,
        lambda name, sql, ours, theirs: (
            name in ("date_sub", "datesub") and theirs == "[None]" and "(DATE)" in ours
        ),
    ),
    (_MIXED, lambda name, sql, ours, theirs: name in ("greatest", "least") and "MonthDayNano" in ours),
)


def known_difference(name: str, sql: str, found: Difference) -> str | None:
    """Why the answers to a call differ; None where nobody knows."""
    ours, theirs = str(found.ours), str(found.theirs)
    return next((why for why, test in _KNOWN if test(name, sql, ours, theirs)), None)
