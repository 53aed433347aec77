"""Answers of calls that are known to differ from DuckDB's, as docs/sql.md lists them.

python -m tests.sql.random_casts.known_calls     # writes the list there anew
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.sql.random_casts.compare import Difference

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "sql.md"
_BEGIN: Final = "<!-- calls: begin (python -m tests.sql.random_casts.known_calls) -->"
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
_BEFORE_ALL: Final = re.compile(r"Date out of range: -58776\d\d-")
_BETWEEN: Final = ("median", "quantile_cont")
_OF_DATES: Final = ("date_diff", "datediff", "date_sub", "datesub")

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
        "`decade`, `century` and `millennium`, and `date_trunc` to them, of TIMESTAMPTZ before the year 1",
        "without the sign; cut otherwise",
        "as of TIMESTAMP",
        lambda a: (
            a.is_of_instants
            and (a.name in ("date_trunc", "datetrunc") or (a.ours[:1] == "-" and a.ours[1:] == a.theirs))
        ),
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
        lambda a: "DECIMAL(38,0) overflow" in a.ours,
    ),
    Known(
        "`round(NULL, n)` of a DECIMAL that has fewer digits than `n` cuts",
        "0",
        "NULL",
        lambda a: a.name == "round" and (a.ours, a.theirs) == ("None", "0"),
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
        "`date_sub` of NULL and a DATE that is no TIMESTAMP",
        "NULL",
        "an error",
        lambda a: a.name in _OF_DATES and a.theirs == "[None]" and "(DATE)" in a.ours,
    ),
    Known(
        "`median` and `quantile_cont` of DATEs, of which some are no TIMESTAMP",
        "an answer where the middle is one",
        "an error",
        lambda a: a.name in _BETWEEN and "(DATE)" in a.ours,
    ),
    Known(
        "`greatest` and `least` of intervals",
        "compare months, then days, then the rest",
        "compare as `<` does",
        lambda a: a.name in ("greatest", "least") and "MonthDayNano" in a.ours,
    ),
)


def known_difference(name: str, sql: str, found: Difference) -> str | None:
    """Why the answers to a call differ; None where nobody knows."""
    asked = Asked(name, sql, str(found.ours), str(found.theirs))
    return next((known.what for known in KNOWN if known.applies(asked)), None)


def listed(text: str) -> str:
    """The document's text with the list of now."""
    rows = [f"| {known.what} | {known.theirs} | {known.ours} |" for known in KNOWN]
    before, rest = text.split(_BEGIN)
    return before + "\n".join((_BEGIN, *_HEAD, *rows, _END)) + rest.split(_END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(listed(DOCUMENT.read_text()))
