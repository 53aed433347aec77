"""Casts from strings: Arrow's parsers for strings that they read as DuckDB does, one parse of each other."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.casts.outcome import Outcome, failed_where_valid
from bamquery.engine.cpu.kernels import (
    Column,
    Kind,
    boolean_column,
    boolean_values,
    compute,
    convert,
    null_where,
    take,
)
from bamquery.engine.cpu.numeric.arithmetic import integer_range
from bamquery.plan.literals import interval_strings, time_strings
from bamquery.plan.literals import number_strings as parsing

_DATE: Final = r"^\d{4}-\d{2}-\d{2}$"
_MOMENT: Final = r"-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}FRACTION)?$"
"""What Arrow reads as DuckDB does behind a year: no more digits of a second than the unit has."""
_YEAR: Final = r"^\d{4}"
_YEAR_OF_NANOSECONDS: Final = r"^(1[7-9]\d{2}|2[01]\d{2})"
"""Beyond what 64 bits of nanoseconds hold Arrow wraps around."""
_PLAIN_FLOAT: Final = r"^-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,2})?$"

_DECIMAL_DIGITS: Final = 38
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _parse_column(column: Column, plain: str, parse: Callable[[str], Any], kind: Kind) -> Outcome:
    """Arrow's parser for strings that match `plain`, one call of `parse` for each other distinct one."""
    matched = boolean_values(
        compute("match_substring_regex", column, options=pc.MatchSubstringOptions(plain))
    )
    others = ~matched
    if column.null_count:
        others &= boolean_values(compute("is_valid", column))
        matched = ~others
    if not matched.any():
        return _parse_distinct(column, parse, kind)
    easy = null_where(boolean_column(others), column)
    try:
        values = convert(easy, kind)
    except pa.ArrowInvalid:  # a day that there is not
        return _parse_distinct(column, parse, kind)
    if not others.any():
        return Outcome(values)
    rest = _parse_distinct(take(column, np.flatnonzero(others)), parse, kind)
    failed = None
    if rest.failed is not None:
        mask = np.zeros(len(column), np.bool_)
        mask[others] = boolean_values(rest.failed)
        failed = boolean_column(mask)
    return Outcome(compute("replace_with_mask", values, boolean_column(others), rest.values), failed)


def _holds(column: Column, *characters: str) -> bool:
    """Whether one of these ASCII characters is in any of the strings."""
    buffers: Any = column.buffers()
    if buffers[2] is None or not len(column):
        return False
    offsets = np.frombuffer(buffers[1], np.int64)[column.offset : column.offset + len(column) + 1]
    found = np.frombuffer(buffers[2], np.uint8)[offsets[0] : offsets[-1]]
    return any(bool((found == ord(character)).any()) for character in characters)


def _parse_distinct(column: Column, parse: Callable[[str], Any], kind: Kind) -> Outcome:
    """One call of `parse` for each distinct text; None is a failure, as is a value that `kind` has not."""
    encoded = compute("dictionary_encode", column)
    assert isinstance(encoded, pa.DictionaryArray)
    strings: list[Any] = encoded.dictionary.to_pylist()
    values = [parse(text) for text in strings]
    bad: Column = pa.array([value is None for value in values], pa.bool_())
    found = take(pa.array(values, _storage_type(kind)).view(kind), encoded.indices)
    failed = boolean_values(take(bad, encoded.indices))
    return Outcome(found, failed_where_valid(failed, column))


def _storage_type(kind: Kind) -> Kind:
    """The type that values are counted in: integers for dates, times and timestamps."""
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_time64(kind) or pa.types.is_timestamp(kind) else kind


def to_boolean(column: Column, kind: Kind) -> Outcome:
    """true, t, yes, y, 1 and their opposites."""
    return _parse_distinct(column, parsing.boolean, kind)


def to_integer(column: Column, kind: Kind) -> Outcome:
    """Fractions round half away from zero."""
    if not _holds(column, "x", "X"):  # Arrow reads 0xFF as a pattern of bits
        try:
            return Outcome(convert(column, kind))
        except pa.ArrowInvalid:
            pass
    low, high = integer_range(kind)
    read = parsing.number_reader(kind)

    def parse(text: str) -> int | None:
        number = read(text)
        if number is None:
            return None
        whole = int(parsing.round_number(number, 0))
        return whole if low <= whole <= high else None

    sign = "-?" if low < 0 else ""
    return _parse_column(column, rf"^{sign}\d{{1,{len(str(high)) - 1}}}$", parse, kind)


def to_float(column: Column, kind: Kind) -> Outcome:
    """Decimal numbers, infinity and NaN; what is too large is infinite."""
    try:
        return Outcome(convert(column, kind))
    except pa.ArrowInvalid:
        return _parse_column(column, _PLAIN_FLOAT, parsing.parse_float, kind)


def to_decimal(column: Column, kind: Kind) -> Outcome:
    """Digits beyond the scale round half away from zero."""
    assert isinstance(kind, pa.Decimal128Type)
    # Arrow's parser wraps around where a number, with the zeros of the scale, has more digits than any
    # decimal; of exponents it looks beyond its table of powers.
    longest = pc.max(compute("utf8_length", column)).as_py() or 0
    if longest + kind.scale <= _DECIMAL_DIGITS and not _holds(column, "e", "E"):
        try:
            return Outcome(convert(column, kind))
        except pa.ArrowInvalid:
            pass  # digits beyond the scale, another notation, no number
    bound = Decimal(10) ** (kind.precision - kind.scale)
    read = parsing.number_reader(kind)

    def parse(text: str) -> Decimal | None:
        number = read(text)
        if number is None:
            return None
        number = parsing.round_number(number, kind.scale)
        return number if number.copy_abs() < bound else None

    whole = kind.precision - kind.scale
    if not whole:
        return _parse_distinct(column, parse, kind)
    fraction = rf"(\.\d{{1,{kind.scale}}})?" if kind.scale else ""
    return _parse_column(column, rf"^-?\d{{1,{whole}}}{fraction}$", parse, kind)


def to_date(column: Column, kind: Kind) -> Outcome:
    """A time of day after the date is dropped."""
    try:
        return Outcome(convert(column, kind))
    except pa.ArrowInvalid:
        pass
    encoded = compute("dictionary_encode", column)  # days come again and again
    assert isinstance(encoded, pa.DictionaryArray)
    days = _parse_column(encoded.dictionary, _DATE, time_strings.date, kind)
    failed = None if days.failed is None else take(days.failed, encoded.indices)
    return Outcome(
        take(days.values, encoded.indices),
        None if failed is None else failed_where_valid(boolean_values(failed), column),
    )


def to_time(column: Column, kind: Kind) -> Outcome:
    """A date before the time is dropped."""
    digits = _DIGITS[kind.unit]
    return _parse_distinct(column, lambda text: time_strings.time(text, digits), kind)


def to_timestamp(column: Column, kind: Kind) -> Outcome:
    """An offset from UTC counts where the type has a zone, and is dropped where it has none."""
    digits, in_utc = _DIGITS[kind.unit], kind.tz is not None

    def parse(text: str) -> int | None:
        return time_strings.timestamp(text, digits, in_utc=in_utc)

    year = _YEAR_OF_NANOSECONDS if kind.unit == "ns" else _YEAR
    fraction = rf"(\.\d{{1,{digits}}})?" if digits else ""
    return _parse_column(column, year + _MOMENT.replace("FRACTION", fraction), parse, kind)


def to_blob(column: Column, kind: Kind) -> Outcome:
    r"""ASCII characters as they are, `\xAA` for any other byte."""
    return _parse_distinct(column, parsing.blob, kind)


def to_interval(column: Column, kind: Kind) -> Outcome:
    """Amounts with their units, and a time of day."""

    def parse(text: str) -> Any:
        parts = interval_strings.parse_interval(text)
        return None if parts is None else (*parts[:2], parts[2] * 1000)

    return _parse_distinct(column, parse, kind)
