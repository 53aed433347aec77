"""Values of Arrow columns as text, the same for every output."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.casts.to_text import from_date, from_time
from bamquery.engine.time_units import units_per_day
from bamquery.plan import interval_text

_PLAIN_SCALE: Final = 6
"""Decimals of more fractional digits would come out with an exponent where they are small."""


def texts(column: pa.Array[Any]) -> pa.Array[Any]:
    """The column as strings: timestamps as ISO 8601 with a space, binaries as hexadecimal digits."""
    kind = column.type
    if isinstance(column, pa.DictionaryArray):
        return texts(column.dictionary_decode())
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        hexadecimal = [None if value is None else value.hex() for value in column.to_pylist()]
        return pa.array(hexadecimal, pa.large_string())
    if pa.types.is_date(kind):
        return from_date(column, pa.large_string()).values
    if pa.types.is_time(kind) and _has_end_of_day(column):
        return from_time(pc.cast(column, pa.time64("us"), safe=False), pa.large_string()).values
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return _without_trailing_zeros(pc.cast(column, pa.large_string()))
    if pa.types.is_decimal(kind) and kind.scale > _PLAIN_SCALE:
        plain = [None if value is None else format(value, "f") for value in column.to_pylist()]
        return pa.array(plain, pa.large_string())
    if pa.types.is_interval(kind):
        written = [None if span is None else _interval(span) for span in column.to_pylist()]
        return pa.array(written, pa.large_string())
    if pa.types.is_floating(kind):
        # "1" would look like an integer.
        return pc.replace_substring_regex(pc.cast(column, pa.large_string()), r"^(-?\d+)$", r"\1.0")
    if pa.types.is_large_string(kind):
        return column
    return pc.cast(column, pa.large_string())


def _has_end_of_day(column: pa.Array[Any]) -> bool:
    """Whether 24:00:00 is among times, which Arrow has no text for."""
    stored = column.view(pa.int32() if pa.types.is_time32(column.type) else pa.int64())
    end = pa.scalar(units_per_day(column.type), stored.type)
    return bool(pc.any(pc.equal(stored, end)).as_py())


def _interval(span: Any) -> str:
    return interval_text.write(span.months, span.days, span.nanoseconds // 1000)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of the type are written without quotes and flush right."""
    if pa.types.is_dictionary(kind):
        return is_number(kind.value_type)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def printable(text: str, width: int) -> str:
    """At most `width` characters on one line: control characters escaped, the rest cut off."""
    if len(text) <= width and text.isprintable():
        return text
    # Twice the width is enough to escape, however long the value is.
    cut = text[: 2 * width]
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut)
    if len(escaped) > width or len(text) > len(cut):
        return escaped[: width - 1] + "…"
    return escaped


def _without_trailing_zeros(column: pa.Array[Any]) -> pa.Array[Any]:
    shorter = pc.replace_substring_regex(column, r"(\.\d*?)0+(Z|$)", r"\1\2")
    return pc.replace_substring_regex(shorter, r"\.(Z|$)", r"\1")
