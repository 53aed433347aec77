"""The ways to read a column of text: which come first, and what each of them allows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.storage.types import DataType

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

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
    pattern: str = ""
    """If not empty, `parsed` is text, and this strptime pattern makes `type` of it."""
    shape: str = ""
    """A regular expression for that pattern, with the day of the month as group d."""
    final: DataType | None = None
    ambiguous_with: str = ""
    """Name of the reading that understands some of the same text differently."""

    @property
    def type(self) -> DataType:
        """What the column has in the end."""
        return self.final or self.parsed


def _stamp(pattern: str, shape: str) -> Reading:
    return Reading(pattern, pa.large_string(), pattern, shape, pa.timestamp("us"))


def _date(pattern: str, shape: str, ambiguous_with: str = "") -> Reading:
    return Reading(pattern, pa.large_string(), pattern, shape, pa.date32(), ambiguous_with)


def _month_or_day_first(separator: str) -> tuple[Reading, Reading]:
    """A column in which no value tells which of the two it is stays text: a guess might swap them."""
    s = re.escape(separator)
    month_first, day_first = f"%m{separator}%d{separator}%Y", f"%d{separator}%m{separator}%Y"
    return (
        _date(month_first, rf"^\d{{1,2}}{s}(?P<d>\d{{1,2}}){s}\d{{4}}$", day_first),
        _date(day_first, rf"^(?P<d>\d{{1,2}}){s}\d{{1,2}}{s}\d{{4}}$", month_first),
    )


NOTHING: Final = Reading("nothing", pa.null())
BOOLEAN: Final = Reading("boolean", pa.bool_())
INTEGER: Final = Reading("integer", pa.int64())
HUGE: Final = Reading("huge integer", pa.decimal128(38, 0))
DOUBLE: Final = Reading("double", pa.float64())
TIME: Final = Reading("time", pa.time64("us"))
DATE: Final = Reading("date", pa.date32())
STAMP: Final = Reading("timestamp", pa.timestamp("us"))
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
    Reading("timestamp to the nanosecond", pa.timestamp("ns")),
    Reading("timestamp with zone", pa.timestamp("us", "UTC")),
    Reading("timestamp with zone to the nanosecond", pa.timestamp("ns", "UTC")),
    _date("%Y-%m-%d", r"^\d{4}-\d{1,2}-(?P<d>\d{1,2})$"),
    _date("%Y/%m/%d", r"^\d{4}/\d{1,2}/(?P<d>\d{1,2})$"),
    *_month_or_day_first("/"),
    *_month_or_day_first("-"),
    *_month_or_day_first("."),
    _stamp(
        "%m/%d/%Y %I:%M:%S %p", r"^\d{1,2}/(?P<d>\d{1,2})/\d{4} \d{1,2}:\d{2}:\d{2} [AaPp][Mm]$"
    ),  # NYC Open Data's exports
    _stamp("%Y/%m/%d %H:%M:%S", r"^\d{4}/\d{1,2}/(?P<d>\d{1,2}) \d{1,2}:\d{2}:\d{2}$"),
    TEXT,
)
"""In order of preference; a column has the first that all its values allow."""

BY_NAME: Final = {reading.name: reading for reading in READINGS}

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
    is_local = inferred in (DATE, STAMP) or bool(inferred.pattern)
    if is_local and (pa.types.is_date(wanted) or pa.types.is_timestamp(wanted)):
        return inferred
    return TEXT


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


def interpret(text: Array, reading: Reading) -> Array | None:
    """`text` by the reading's pattern, or None if some value does not follow it (30 February does not)."""
    parts = pc.extract_regex(text, reading.shape)
    parsed = pc.strptime(text, format=reading.pattern, unit="us", error_is_null=True)
    if not parts.null_count == parsed.null_count == text.null_count:
        return None
    days = pc.struct_field(parts, "d").cast(pa.int64())
    if not pc.all(pc.equal(days, pc.day(parsed)), min_count=0).as_py():
        return None
    return parsed.cast(reading.type)
