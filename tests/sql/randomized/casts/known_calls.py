"""Answers of calls that are known to differ from DuckDB's, as docs/sql.md lists them.

python -m tests.sql.randomized.casts.known_calls     # writes the list there anew
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.sql.randomized.casts.compare import Difference

DOCUMENT: Final = Path(__file__).parents[4] / "docs" / "sql.md"
_BEGIN: Final = "<!-- calls: begin (python -m tests.sql.randomized.casts.known_calls) -->"
_END: Final = "<!-- calls: end -->"
_HEAD: Final = ("| call | DuckDB 2.0 | BamQuery |", "|---|---|---|")


@dataclass(frozen=True)
class Asked:
    """A call with both answers, or what errors say, as texts."""

    name: str
    sql: str
    ours: str
    theirs: str

    @property
    def is_answered(self) -> bool:
        """Whether we have an answer."""
        return "Error" not in self.ours

    @property
    def is_of_instants(self) -> bool:
        """Whether a TIMESTAMPTZ is among the arguments."""
        return "timestamptz" in self.sql.lower()


@dataclass(frozen=True)
class Known:
    """One difference: what of, both answers in words, and which calls it is about."""

    what: str
    theirs: str
    ours: str
    applies: Callable[[Asked], bool]


_TOO_FAR: Final = ("timestamp out of range", "Overflow in subtraction", "Unable to subtract calendar part")
_TOO_FAR_A_BUCKET: Final = ("Overflow in subtraction of INT64", "Unable to get calendar time")
_BEFORE_ALL: Final = re.compile(r"Date out of range: -58776\d\d-")
_BETWEEN: Final = ("median", "quantile_cont")
_OF_DATES: Final = ("date_diff", "datediff", "date_sub", "datesub")
_BY_ORDER: Final = frozenset(
    {
        *("min", "max", "arg_min", "argmin", "min_by", "arg_min_null"),
        *("arg_max", "argmax", "max_by", "arg_max_null", "mode"),
    }
)
_CUTTING: Final = ("round", "round_even", "roundbankers", "trunc")
_YEARS: Final = ("year", "decade", "date_part", "datepart")
_ZEROS: Final = frozenset({"0.0", "-0.0"})
_SPAN: Final = re.compile(r"MonthDayNano\(months=(-?\d+), days=(-?\d+), nanoseconds=(-?\d+)\)")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_FLOAT_DIGITS: Final = 1e-7
_DAY_NANOSECONDS: Final = 86_400 * 10**9
_FIRST_WORD: Final = str(-(2**63))
_YEAR_1900: Final = "-2208988800000000"


def _say_the_same_floats(one: str, other: str) -> bool:
    """Whether texts are alike but for how numbers of 32 bits are written."""
    if _NUMBER.sub("0", one) != _NUMBER.sub("0", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    # A text behind a number may be taken for more digits of it.
    return all(math.isclose(float(a), float(b), rel_tol=_FLOAT_DIGITS) for a, b in pairs)


def _are_neighbours(one: str, other: str) -> bool:
    return all(text.lstrip("-").isdigit() for text in (one, other)) and abs(int(one) - int(other)) == 1


def _are_years_of_an_era(ours: str, theirs: str) -> bool:
    """Whether the one counts years, or decades, from 0, and the other those of BC from 1."""
    if not (ours.lstrip("-").isdigit() and theirs.isdigit()):
        return False
    return int(ours) <= 0 <= int(theirs) + int(ours) <= 1


def _nanoseconds(span: str) -> int | None:
    """How long an interval is as `<` has it, with months of 30 days; None of other texts."""
    found = _SPAN.fullmatch(span)
    if found is None:
        return None
    months, days, nanoseconds = map(int, found.groups())
    return (months * 30 + days) * _DAY_NANOSECONDS + nanoseconds


def _are_equal_spans(one: str, other: str) -> bool:
    return _nanoseconds(one) is not None and _nanoseconds(one) == _nanoseconds(other)


KNOWN: Final = (
    Known(
        "intervals of more than 292 years in their time, or of 2^31 months or days",
        "an answer",
        "an error",
        lambda a: "INTERVAL overflow" in a.ours,
    ),
    Known(
        "`week`, `yearweek`, `isoyear` of the first days of DATE",
        "an error",
        "an answer",
        lambda a: a.is_answered and bool(_BEFORE_ALL.search(a.theirs)),
    ),
    Known(
        "`nanosecond` and `strftime` of a TIMESTAMP_S or TIMESTAMP_MS beyond the years of TIMESTAMP_NS",
        "an error",
        "an answer",
        lambda a: a.is_answered and "Could not convert Timestamp to higher precision" in a.theirs,
    ),
    Known(
        "`year` and `decade` of a TIMESTAMPTZ before the year 1",
        "those of the year BC, without a sign",
        "as of TIMESTAMP",
        lambda a: a.is_of_instants and a.name in _YEARS and _are_years_of_an_era(a.ours, a.theirs),
    ),
    Known(
        "`date_trunc` to the decade, century or millennium of a TIMESTAMPTZ before the year 1",
        "cut otherwise",
        "as of TIMESTAMP",
        lambda a: a.is_of_instants and a.name in ("date_trunc", "datetrunc") and a.ours[:1] == "-",
    ),
    Known(
        "`make_date(2147483647)` and other infinite dates",
        "`infinity`",
        "an error",
        lambda a: a.name == "make_date" and "DATE overflow" in a.ours,
    ),
    Known(
        "HUGEINT of 39 digits, by any function",
        "an answer",
        "an error",
        lambda a: "DECIMAL(38,0) overflow" in a.ours or (a.name == "lcm" and " is out of range" in a.ours),
    ),
    Known(
        "`round(NULL, n)`, `round_even` and `trunc` of a DECIMAL that has fewer digits than `n` cuts",
        "0",
        "NULL",
        lambda a: a.name in _CUTTING and (a.ours, a.theirs) == ("None", "0"),
    ),
    Known(
        "`date_diff` and `date_sub` of TIMESTAMPTZ that are very far apart",
        "an error",
        "an answer",
        lambda a: (
            a.name in _OF_DATES
            and a.is_of_instants
            and a.is_answered
            and any(words in a.theirs for words in _TOO_FAR)
        ),
    ),
    Known(
        "`date_diff` of TIMESTAMPTZ in decades, centuries and millennia across the year 1",
        "one less than of TIMESTAMP, or one more",
        "as of TIMESTAMP",
        lambda a: a.name in _OF_DATES and a.is_of_instants and _are_neighbours(a.ours, a.theirs),
    ),
    Known(
        "`median` and `quantile_cont` of DATEs, of which some are no TIMESTAMP",
        "an answer where the middle is one",
        "an error",
        lambda a: a.name in _BETWEEN and "(DATE)" in a.ours,
    ),
    Known(
        "`median` and `quantile_cont` between two moments at the end of 64 bits, which doubles round over it",
        "`-9223372036854775808` of their unit",
        "the outer one of the two",
        lambda a: (
            a.name in _BETWEEN and a.theirs == _FIRST_WORD and a.ours.lstrip("-")[:15] == _FIRST_WORD[1:16]
        ),
    ),
    Known(
        "`min`, `max`, `mode`, `arg_min` and `arg_max` of -0.0 beside 0.0, which are one value",
        "either sign, by the order of rows",
        "either sign, by the order of rows",
        lambda a: a.name in _BY_ORDER and {a.ours, a.theirs} == _ZEROS,
    ),
    Known(
        "`min`, `max`, `arg_min` and `arg_max` of intervals that are equal, as `30 days` and `1 month`",
        "one of them, by the order of rows",
        "one of them, by the order of rows",
        lambda a: a.name in _BY_ORDER and _are_equal_spans(a.ours, a.theirs),
    ),
    Known(
        "`try_strptime` of `infinity` and `epoch`",
        "1900-01-01",
        "NULL; 1970-01-01, as `strptime`",
        lambda a: a.name == "try_strptime" and a.theirs == _YEAR_1900 and a.ours in ("None", "0"),
    ),
    Known(
        "`time_bucket` by months of a DATE outside of TIMESTAMP's range",
        "a DATE",
        "an error",
        lambda a: a.name == "time_bucket" and "(DATE) cannot be cast to TIMESTAMP" in a.ours,
    ),
    Known(
        "`time_bucket` of a TIMESTAMPTZ and a start more than 292,271 years away",
        "an error",
        "an answer",
        lambda a: (
            a.name == "time_bucket"
            and a.is_of_instants
            and a.is_answered
            and any(words in a.theirs for words in _TOO_FAR_A_BUCKET)
        ),
    ),
    Known(
        "strings of a FLOAT, as of `concat`, with more digits than tell it from its neighbours",
        "exact digits",
        "the shortest ones",
        lambda a: "float" in a.sql.lower() and _say_the_same_floats(a.ours, a.theirs),
    ),
    Known(
        "an interval added to a TIMESTAMPTZ of the last thousandth of a second that there is",
        "an error",
        "an answer where it goes back",
        lambda a: a.is_of_instants and a.is_answered and "(9223372036854776 * 1000)" in a.theirs,
    ),
    Known(
        "`substring(x, -4294967296)`",
        "without the last character",
        "all of the text",
        lambda a: (
            a.name in ("substr", "substring")
            and ("-4294967296" in a.sql or "bigint" in a.sql)
            and a.theirs == a.ours[:-1]
        ),
    ),
    Known(
        "a constant TIMESTAMP before 290309-12-22 (BC), as of `make_timestamp`",
        "an error; of a column's value an answer",
        "an answer",
        lambda a: a.is_answered and "Date out of range in timestamp conversion" in a.theirs,
    ),
    Known(
        "`nullif` of a DATE that is no TIMESTAMP and a timestamp",
        "an error",
        "an answer where they are told apart without a cast",
        lambda a: (
            a.name == "nullif" and a.is_answered and "can't be cast to the destination type INT64" in a.theirs
        ),
    ),
    Known(
        "`greatest` and `least` of intervals",
        "compare months, then days, then the rest",
        "compare as `<` does",
        lambda a: a.name in ("greatest", "least") and "MonthDayNano" in a.ours,
    ),
    Known(
        "`epoch_ms` of a TIME_NS",
        "an error: it casts INT64 to INT64",
        "its milliseconds",
        lambda a: a.name == "epoch_ms" and a.is_answered and "cast (INT64 -> INT64)" in a.theirs,
    ),
)


def known_difference(name: str, sql: str, found: Difference) -> str | None:
    """Why the answers to a call differ; None where nobody knows."""
    asked = Asked(name, sql, str(found.ours), str(found.theirs))
    return next((known.what for known in KNOWN if known.applies(asked)), None)


def with_known_calls(text: str) -> str:
    """The document's text with the list of now."""
    rows = [f"| {known.what} | {known.theirs} | {known.ours} |" for known in KNOWN]
    before, rest = text.split(_BEGIN)
    return before + "\n".join((_BEGIN, *_HEAD, *rows, _END)) + rest.split(_END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(with_known_calls(DOCUMENT.read_text()))
