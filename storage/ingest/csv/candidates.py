"""The ways to read a column of text: which come first, and what each of them allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.text import date_formats
from bamquery.storage.ingest.text.date_formats import DateFormat

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

# The words DuckDB takes for BOOLEAN; 1 and 0 stay numbers, and the Y and N of taxi files stay text.
TRUE_WORDS: Final = ("true", "True", "TRUE", "t", "T", "yes", "Yes", "YES")
FALSE_WORDS: Final = ("false", "False", "FALSE", "f", "F", "no", "No", "NO")

_ODD_NUMBER: Final = r"^\s*(\+|-?0[0-9xX])"
_WHOLE_NUMBER: Final = r"^\s*-?[0-9]{1,38}\s*$"
_TOO_LONG_NUMBER: Final = r"^\s*-?[0-9]{39,}\s*$"
_LARGEST_EXACT: Final = 1 << 53
"""Whole numbers up to this one, and not all beyond, are doubles."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a column."""

    name: str
    parsed: DataType
    """What the CSV parser makes of it."""
    format: DateFormat | None = None
    """If there is one, `parsed` is text, and this makes `type` of it."""
    is_plain: bool = False
    """Whether it takes dates that begin with a year of four digits, which may be in any file."""

    @property
    def type(self) -> DataType:
        """What the column has in the end."""
        return self.format.type if self.format else self.parsed

    def may_take(self, text: str) -> bool:
        """Whether a value, by a look at its characters, may be read so; always, but for dates and times."""
        if self.format is not None:
            return self.format.fits(text)
        if pa.types.is_time(self.parsed):
            return re.match(r"\d\d:\d\d", text) is not None
        if pa.types.is_date(self.parsed) or pa.types.is_timestamp(self.parsed):
            return re.match(r"\d{4}-\d\d-\d\d", text) is not None
        return True

    @property
    def has_free_format(self) -> bool:
        """Whether it takes dates, with or without a time, of a format that all columns have in common."""
        return self.format is not None and self.format.kind != "time" and not self.is_plain


def readings_of_formats(formats: Iterable[DateFormat], *, is_plain: bool = False) -> tuple[Reading, ...]:
    """Readings of text by formats."""
    return tuple(
        Reading(one.name, pa.large_string(), one, is_plain or one.name.startswith("%Y")) for one in formats
    )


NOTHING: Final = Reading("nothing", pa.null())
BOOLEAN: Final = Reading("boolean", pa.bool_())
INTEGER: Final = Reading("integer", pa.int64())
HUGE: Final = Reading("huge integer", pa.decimal128(38, 0))
DOUBLE: Final = Reading("double", pa.float64())
TIME: Final = Reading("time", pa.time64("us"))
DATE: Final = Reading("date", pa.date32(), is_plain=True)
STAMP: Final = Reading("timestamp", pa.timestamp("us"), is_plain=True)
TEXT: Final = Reading("text", pa.large_string())

READINGS: Final[tuple[Reading, ...]] = (
    NOTHING,
    BOOLEAN,
    INTEGER,
    HUGE,
    DOUBLE,
    TIME,
    DATE,
    STAMP,
    Reading("timestamp to the nanosecond", pa.timestamp("ns"), is_plain=True),
    Reading("timestamp with zone", pa.timestamp("us", "UTC"), is_plain=True),
    Reading("timestamp with zone to the nanosecond", pa.timestamp("ns", "UTC"), is_plain=True),
    *readings_of_formats([date_formats.TIME]),
    *readings_of_formats(date_formats.DATES),
    *readings_of_formats(date_formats.ISO_STAMPS, is_plain=True),
    *readings_of_formats(date_formats.STAMPS),
    *readings_of_formats(date_formats.ISO_INSTANTS, is_plain=True),
    TEXT,
)
"""In order of preference; a column has the first that all its values allow."""


def readings_with(formats: Sequence[DateFormat]) -> tuple[Reading, ...]:
    """The readings where formats of dates or timestamps are given: besides, those with years first.

    They come before numbers, which some take for dates: `20240131`.
    """
    kinds = {format_.kind for format_ in formats}
    others = [r for r in READINGS if not (r.format and r.has_free_format and r.format.kind in kinds)]
    numbers = others.index(INTEGER)
    return (*others[:numbers], *readings_of_formats(formats), *others[numbers:])


FITS_ALSO: Final = frozenset({(INTEGER, HUGE), (INTEGER, DOUBLE), (HUGE, DOUBLE), (DATE, STAMP)})
"""Pairs (a, b) where all values that a allows, b allows too; besides (NOTHING, any) and (any, TEXT).

To DOUBLE that is so for whole numbers for which `is_exact` holds.
"""


def reading_for(inferred: Reading, wanted: DataType) -> Reading:
    """How a column is read that will be cast to a type: as text unless what was inferred casts to the same.

    A number has forgotten how it was written, and an instant its zone: 2 is no BOOLEAN, 007 no 7, 2.5 rounds
    half to even as a double only, and 12:00+02 is 12:00 to TIMESTAMP.
    """
    if inferred is NOTHING or inferred.type == wanted:
        return inferred
    if inferred is INTEGER and (pa.types.is_integer(wanted) or pa.types.is_floating(wanted)):
        return inferred
    is_local = inferred in (DATE, STAMP) or (
        inferred.format and inferred.format.kind in ("date", "timestamp")
    )
    if is_local and (pa.types.is_date(wanted) or pa.types.is_timestamp(wanted)):
        return inferred
    return TEXT


def is_number(reading: Reading) -> bool:
    """Whether a column is one of numbers."""
    return reading in (INTEGER, HUGE, DOUBLE)


def is_exact(values: Array) -> bool:
    """Whether whole numbers are small enough that each is a double."""
    if values.null_count == len(values):
        return True
    return bool(pc.max(values).as_py() <= _LARGEST_EXACT and pc.min(values).as_py() >= -_LARGEST_EXACT)


def may_hide_digits(values: Array) -> bool:
    """Whether some double is so large that the text it came from may have been a whole number it is not."""
    magnitude = pc.abs(values)
    # NaN compares false, and infinity was never a whole number.
    large = pc.and_(pc.greater_equal(magnitude, pa.scalar(float(_LARGEST_EXACT))), pc.is_finite(magnitude))
    return pc.any(large).as_py() is True


def hides_digits(text: Array) -> bool:
    """Whether some whole number in `text` is no double, or has too many digits to tell."""
    if pc.any(pc.match_substring_regex(text, _TOO_LONG_NUMBER)).as_py():
        return True
    whole = pc.utf8_trim_whitespace(text.filter(pc.match_substring_regex(text, _WHOLE_NUMBER)))
    exact = whole.cast(pa.decimal128(38, 0))
    rounded = exact.cast(pa.float64()).cast(exact.type, safe=False)
    return pc.all(pc.equal(rounded, exact), min_count=0).as_py() is not True


def has_odd_numbers(text: Array) -> bool:
    """Whether some number in `text` is written as no number would be printed: 007, 0x1F, +49. Codes are."""
    return pc.any(pc.match_substring_regex(text, _ODD_NUMBER)).as_py() is True


def all_whole(text: Array) -> bool:
    """Whether everything in `text` is a plain whole number of at most 38 digits."""
    return pc.all(pc.match_substring_regex(text, _WHOLE_NUMBER), min_count=0).as_py() is True


def has_overflown(values: Array, text: Array) -> bool:
    """Whether some timestamp is not of the year that its text starts with, give or take what zones do.

    Older versions of Arrow's parser let timestamps pass that no 64-bit number of nanoseconds holds.
    """
    years = pc.utf8_slice_codeunits(text, 0, 4).cast(pa.int64())
    apart = pc.abs(pc.subtract(years, pc.call_function("year", [values])))
    return pc.any(pc.greater(apart, pa.scalar(1))).as_py() is True
