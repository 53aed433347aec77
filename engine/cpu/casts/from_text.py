"""Casts from strings: Arrow's parsers where they agree with DuckDB's, else one parse per distinct text."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.arithmetic import integer_range
from bamquery.engine.cpu.casts.outcome import Outcome, failing
from bamquery.engine.cpu.kernels import Column, Kind, booleans_of, compute, convert, take
from bamquery.engine.time_units import LARGEST_DAY, UNITS_PER_SECOND
from bamquery.plan import interval_text, parsing

_ISO: Final = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,9})?)?$"
"""Timestamps that Arrow reads as DuckDB does."""

_DECIMAL_DIGITS: Final = 38
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _parsed(column: Column, parse: Callable[[str], Any], kind: Kind) -> Outcome:
    """One call of `parse` for each distinct text; None is a failure, as is a value that `kind` has not."""
    encoded = compute("dictionary_encode", column)
    assert isinstance(encoded, pa.DictionaryArray)
    texts: list[Any] = encoded.dictionary.to_pylist()
    values = [parse(text) for text in texts]
    bad: Column = pa.array([value is None for value in values], pa.bool_())
    found = take(pa.array(values, kind), encoded.indices)
    failed = booleans_of(take(bad, encoded.indices))
    return Outcome(found, failing(failed, column))


def to_boolean(column: Column, kind: Kind) -> Outcome:
    """true, t, yes, y, 1 and their opposites."""
    return _parsed(column, parsing.boolean, kind)


def to_integer(column: Column, kind: Kind) -> Outcome:
    """Fractions round half away from zero."""
    try:
        return Outcome(convert(column, kind))
    except pa.ArrowInvalid:
        low, high = integer_range(kind)

        def parse(text: str) -> int | None:
            number = parsing.exact_number(text) if low < 0 else parsing.unsigned_number(text)
            if number is None:
                return None
            whole = int(parsing.rounded(number, 0))
            return whole if low <= whole <= high else None

        return _parsed(column, parse, kind)


def to_float(column: Column, kind: Kind) -> Outcome:
    """Decimal numbers, infinity and NaN; what is too large is infinite."""
    try:
        return Outcome(convert(column, kind))
    except pa.ArrowInvalid:
        return _parsed(column, parsing.floating, kind)


def to_decimal(column: Column, kind: Kind) -> Outcome:
    """Digits beyond the scale round half away from zero."""
    assert isinstance(kind, pa.Decimal128Type)
    # Arrow's parser wraps around where a number has more digits than any decimal.
    if (pc.max(compute("utf8_length", column)).as_py() or 0) <= _DECIMAL_DIGITS:
        try:
            return Outcome(convert(column, kind))
        except pa.ArrowInvalid:
            pass  # digits beyond the scale, another notation, no number
    bound = Decimal(10) ** (kind.precision - kind.scale)

    def parse(text: str) -> Decimal | None:
        number = parsing.exact_number(text)
        if number is None:
            return None
        number = parsing.rounded(number, kind.scale)
        return number if number.copy_abs() < bound else None

    return _parsed(column, parse, kind)


def to_date(column: Column, kind: Kind) -> Outcome:
    """A time of day after the date is dropped."""
    try:
        return Outcome(convert(column, kind))
    except pa.ArrowInvalid:
        return _stored(column, kind, parsing.date, (-LARGEST_DAY, LARGEST_DAY))


def to_time(column: Column, kind: Kind) -> Outcome:
    """A date before the time is dropped."""
    digits = _DIGITS[kind.unit]
    return _stored(column, kind, lambda text: parsing.time(text, digits), (0, 2**63 - 1))


def to_timestamp(column: Column, kind: Kind) -> Outcome:
    """An offset from UTC counts where the type has a zone, and is dropped where it has none."""
    naive = pa.timestamp(kind.unit)
    if pc.all(compute("match_substring_regex", column, options=pc.MatchSubstringOptions(_ISO))).as_py():
        try:
            return Outcome(convert(convert(column, naive), kind))
        except pa.ArrowInvalid:
            pass  # more digits than the unit, an impossible date
    # Coarse units round what microseconds keep.
    digits = max(_DIGITS[kind.unit], 6)
    step = 10**digits // UNITS_PER_SECOND[kind.unit]
    in_utc = kind.tz is not None

    def parse(text: str) -> int | None:
        units = parsing.timestamp(text, digits, in_utc=in_utc)
        if units is None:
            return None
        return int(parsing.rounded(Decimal(units) / step, 0))

    return _stored(column, kind, parse, (-(2**63) + 2, 2**63 - 2))


def _stored(
    column: Column, kind: Kind, parse: Callable[[str], int | None], limits: tuple[int, int]
) -> Outcome:
    """As `_parsed`, for types whose stored values are integers."""
    low, high = limits

    def within(text: str) -> int | None:
        value = parse(text)
        return value if value is not None and low <= value <= high else None

    outcome = _parsed(column, within, pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return Outcome(outcome.values.view(kind), outcome.failed)


def to_blob(column: Column, kind: Kind) -> Outcome:
    r"""ASCII characters as they are, `\xAA` for any other byte."""
    return _parsed(column, parsing.blob, kind)


def to_interval(column: Column, kind: Kind) -> Outcome:
    """Amounts with their units, and a time of day."""

    def parse(text: str) -> Any:
        parts = interval_text.read(text)
        return None if parts is None else (*parts[:2], parts[2] * 1000)

    return _parsed(column, parse, kind)
