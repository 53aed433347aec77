"""Casts to strings, in DuckDB's spelling."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.calendar import days_and_rest, first_day_of_month, months_of
from bamquery.engine.cpu.casts.outcome import Outcome
from bamquery.engine.cpu.kernels import (
    Column,
    Kind,
    boolean_column,
    compute,
    constant,
    convert,
    make_array,
    stored_values,
    take_shared,
)
from bamquery.engine.formulas.time_units import UNITS_PER_SECOND, units_per_day
from bamquery.plan.literals import interval_strings

_TRAILING_ZEROS: Final = pc.ReplaceSubstringOptions(r"\.?0+$", "")
_POINT: Final = pc.ReplaceSubstringOptions(r"^(-?\d+)$", r"\1.0")
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: the dates that Arrow writes as DuckDB does."""
_PLAIN_BYTE: Final = re.compile(rb"[^ !#-&(-\[\]-~]")


def _per_value(column: Column, write: Callable[[Any], str], kind: Kind) -> Column:
    """One call of `write` for each distinct value."""
    encoded = compute("dictionary_encode", column)
    assert isinstance(encoded, pa.DictionaryArray)
    strings: Column = pa.array([write(value) for value in encoded.dictionary.to_pylist()], kind)
    return take_shared(strings, encoded.indices)


def from_boolean_or_integer(column: Column, kind: Kind) -> Outcome:
    """Booleans and integers."""
    return Outcome(convert(column, kind))


def from_float(column: Column, kind: Kind) -> Outcome:
    """The shortest text that reads back as the same float, with a point or an exponent."""
    values = stored_values(column)
    magnitudes = np.abs(values)
    strings = compute("replace_substring_regex", convert(column, kind), options=_POINT)
    # From 1e10 on, and below 1e-4, Arrow has an exponent where DuckDB has none, or the other way round.
    apart = np.isfinite(magnitudes) & (magnitudes != 0) & ((magnitudes < 1e-4) | (magnitudes >= 1e10))
    if column.null_count:
        apart &= ~_null_mask(column)
    if apart.any():
        write = repr if column.type == pa.float64() else _float32_text
        written = make_array([write(value) for value in values[apart].tolist()], kind)
        strings = compute("replace_with_mask", strings, boolean_column(apart), written)
    return Outcome(strings)


def from_decimal(column: Column, kind: Kind) -> Outcome:
    """All digits of the scale; no 0 before the point where the type has no digits there."""
    own = column.type
    try:
        strings = convert(column, kind)
        scientific = pc.any(
            compute("match_substring", strings, options=pc.MatchSubstringOptions("E"))
        ).as_py()
    except pa.ArrowInvalid:
        scientific = True
    if scientific:
        strings = _per_value(column, lambda value: f"{value:f}", kind)
    if own.precision == own.scale:
        strings = compute(
            "replace_substring_regex", strings, options=pc.ReplaceSubstringOptions(r"^(-?)0\.", r"\1.")
        )
    return Outcome(strings)


def from_date(column: Column, kind: Kind) -> Outcome:
    """ISO 8601; years before 1 as `(BC)`."""
    if _in_common_era(column):
        return Outcome(convert(column, kind))
    days: Column = column.view(pa.int32())
    return Outcome(_per_value(days, _date_text, kind))


def from_time(column: Column, kind: Kind) -> Outcome:
    """Hours to seconds, and as many digits of a fraction as it has."""
    return Outcome(_per_value(convert(column.view(pa.int64()), pa.int64()), _time_writer(column.type), kind))


def from_timestamp(column: Column, kind: Kind) -> Outcome:
    """Date, space, time; with a zone the instant in UTC, marked `+00`."""
    own = column.type
    naive = convert(column, pa.timestamp(own.unit))
    if _in_common_era(naive):
        strings = convert(naive, kind)
        if own.unit != "s":
            strings = compute("replace_substring_regex", strings, options=_TRAILING_ZEROS)
    else:
        per_day, write = units_per_day(own), _time_writer(own)

        def text(value: int) -> str:
            days, rest = divmod(value, per_day)
            return f"{_date_text(days)} {write(rest)}"

        strings = _per_value(naive.view(pa.int64()), text, kind)
    if own.tz is not None:
        strings = compute("binary_join_element_wise", strings, constant("+00", kind), constant("", kind))
    return Outcome(strings)


def from_interval(column: Column, kind: Kind) -> Outcome:
    """Years, months, days, and hours to seconds."""
    return Outcome(
        _per_value(
            column,
            lambda i: interval_strings.write(i.months, i.days, i.nanoseconds // 1000),
            kind,
        )
    )


def from_blob(column: Column, kind: Kind) -> Outcome:
    r"""Printable ASCII as it is; other bytes, quotes and backslashes as `\xAA`."""
    return Outcome(_per_value(column, _blob_text, kind))


def _float32_text(value: float) -> str:
    """As Python writes a double, with the digits that tell 32-bit floats apart."""
    if value == 0 or not math.isfinite(value):
        return repr(value)
    if 1e-4 <= abs(value) < 1e16:
        return np.format_float_positional(np.float32(value), trim="0")
    return np.format_float_scientific(np.float32(value), trim="-", exp_digits=2)


def _null_mask(column: Column) -> Any:
    return compute("is_null", column).to_numpy(zero_copy_only=False)


def _in_common_era(column: Column) -> bool:
    days, _ = days_and_rest(column.drop_null())
    return len(days) == 0 or bool(days.min() >= _FIRST_DAY and days.max() <= _LAST_DAY)


def _date_text(days: int) -> str:
    one = np.array([days], np.int64)
    months = months_of(one)
    year = int(months[0] // 12) + 1970
    day = days - int(first_day_of_month(months)[0]) + 1
    era = ""
    if year < 1:
        year, era = 1 - year, " (BC)"
    return f"{year:04d}-{int(months[0] % 12) + 1:02d}-{day:02d}{era}"


def _time_writer(kind: Kind) -> Callable[[int], str]:
    per_second = UNITS_PER_SECOND[kind.unit]
    digits = len(str(per_second)) - 1

    def write(units: int) -> str:
        seconds, fraction = divmod(units, per_second)
        text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{text}.{fraction:0{digits}d}".rstrip("0") if fraction else text

    return write


def _blob_text(value: bytes) -> str:
    return _PLAIN_BYTE.sub(lambda match: f"\\x{match[0][0]:02X}".encode(), value).decode("ascii")
