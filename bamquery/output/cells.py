"""Values of Arrow columns as text, the same for every output: as a cast to VARCHAR writes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.formulas.time_units import units_per_day


def cell_strings(column: pa.Array[Any]) -> pa.Array[Any]:
    """The column as strings, so that a cast of these gives its values back."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_large_string(kind):
        return column
    if pa.types.is_string(kind) or pa.types.is_integer(kind):
        return pc.cast(column, pa.large_string())
    if pa.types.is_time(kind) and not _has_end_of_day(column):
        # Arrow's own text is the cast's but for zeros at the end, and faster.
        text = pc.cast(column, pa.large_string())
        return pc.replace_substring_regex(text, r"\.?0+$", "") if _has_fraction(kind) else text
    from bamquery.engine.cpu.casts.cast import cast  # noqa: PLC0415 (brings all casts that there are)

    return cast(column, pa.large_string(), try_=False)


def _has_fraction(kind: pa.DataType) -> bool:
    return bool(pa.types.is_time64(kind) or kind == pa.time32("ms"))


def _has_end_of_day(column: pa.Array[Any]) -> bool:
    """Whether 24:00:00 is among times, which Arrow has no text for."""
    stored = column.view(pa.int32() if pa.types.is_time32(column.type) else pa.int64())
    end = pa.scalar(units_per_day(column.type), stored.type)
    return bool(pc.any(pc.equal(stored, end)).as_py())


def is_number(kind: pa.DataType) -> bool:
    """Whether values of the type are written without quotes and flush right."""
    if pa.types.is_dictionary(kind):
        return is_number(kind.value_type)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
