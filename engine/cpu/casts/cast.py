"""Which conversion a cast is, and what happens where a value does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.casts import from_string, numeric, temporal, to_string
from bamquery.engine.cpu.casts.outcome import Conversion, Outcome
from bamquery.engine.cpu.kernels import (
    Column,
    Kind,
    compute,
    first_true,
    format_constant,
    nulls,
    take_shared,
)
from bamquery.engine.formulas.dictionaries import with_index_type
from bamquery.engine.formulas.type_families import family
from bamquery.errors import ExecutionError

CONVERSIONS: Final[Mapping[tuple[str, str], Conversion]] = MappingProxyType(
    {
        ("boolean", "integer"): numeric.from_boolean,
        ("boolean", "float"): numeric.from_boolean,
        ("boolean", "decimal"): numeric.from_boolean,
        ("boolean", "text"): to_string.from_boolean_or_integer,
        ("integer", "boolean"): numeric.to_boolean,
        ("integer", "integer"): numeric.integer_to_integer,
        ("integer", "float"): numeric.integer_to_float,
        ("integer", "decimal"): numeric.integer_to_decimal,
        ("integer", "text"): to_string.from_boolean_or_integer,
        ("float", "boolean"): numeric.to_boolean,
        ("float", "integer"): numeric.float_to_integer,
        ("float", "float"): numeric.float_to_float,
        ("float", "decimal"): numeric.float_to_decimal,
        ("float", "text"): to_string.from_float,
        ("decimal", "boolean"): numeric.to_boolean,
        ("decimal", "integer"): numeric.decimal_to_integer,
        ("decimal", "float"): numeric.decimal_to_float,
        ("decimal", "decimal"): numeric.decimal_to_decimal,
        ("decimal", "text"): to_string.from_decimal,
        ("text", "boolean"): from_string.to_boolean,
        ("text", "integer"): from_string.to_integer,
        ("text", "float"): from_string.to_float,
        ("text", "decimal"): from_string.to_decimal,
        ("text", "blob"): from_string.to_blob,
        ("text", "date"): from_string.to_date,
        ("text", "time"): from_string.to_time,
        ("text", "timestamp"): from_string.to_timestamp,
        ("blob", "text"): to_string.from_blob,
        ("date", "text"): to_string.from_date,
        ("date", "timestamp"): temporal.date_to_timestamp,
        ("time", "text"): to_string.from_time,
        ("time", "time"): temporal.time_to_time,
        ("text", "interval"): from_string.to_interval,
        ("interval", "text"): to_string.from_interval,
        ("timestamp", "text"): to_string.from_timestamp,
        ("timestamp", "date"): temporal.timestamp_to_date,
        ("timestamp", "time"): temporal.timestamp_to_time,
        ("timestamp", "timestamp"): temporal.timestamp_to_timestamp,
    }
)


def cast(column: Column, target: pa.DataType, *, try_: bool) -> Column:
    """The column in another type.

    Raises:
        ExecutionError: a value does not fit, unless `try_`, which makes it null.
    """
    if column.type == target:
        return column
    if pa.types.is_null(column.type):
        return nulls(len(column), target)
    if pa.types.is_dictionary(column.type):
        return _from_dictionary(column, target, try_=try_)
    if pa.types.is_dictionary(target):
        return to_dictionary(cast(column, target.value_type, try_=try_), target)
    source, wanted = family(column.type), family(target)
    assert source is not None
    assert wanted is not None
    outcome: Outcome = CONVERSIONS[source, wanted](column, target)
    if outcome.failed is not None and not try_:
        value = column[first_true(outcome.failed)]
        raise ExecutionError(
            f"{format_constant(value)} ({type_name(column.type)}) cannot be cast to {type_name(target)}; "
            "TRY_CAST gives NULL instead"
        )
    assert outcome.values.type == target
    return outcome.values


def _from_dictionary(column: Column, target: pa.DataType, *, try_: bool) -> Column:
    """Each dictionary value once; rows decide only where a value fails, since no row may use it."""
    assert isinstance(column, pa.DictionaryArray)
    try:
        return take_shared(cast(column.dictionary, target, try_=try_), column.indices)
    except ExecutionError:
        return cast(take_shared(column.dictionary, column.indices), target, try_=try_)


def to_dictionary(column: Column, target: Kind) -> Column:
    """The values, dictionary-encoded.

    Raises:
        ExecutionError: there are more distinct values than the index type can number.
    """
    encoded = compute("dictionary_encode", column)
    assert isinstance(encoded, pa.DictionaryArray)
    return with_index_type(encoded, target)
