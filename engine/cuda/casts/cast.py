"""Which conversion a cast is, and what happens where a value does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.casts import numeric, temporal
from bamquery.engine.cuda.casts import string as text
from bamquery.engine.cuda.casts.outcome import Conversion
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.value_errors import fail_cast
from bamquery.engine.formulas.type_families import family

CONVERSIONS: Final[Mapping[tuple[str, str], Conversion]] = MappingProxyType(
    {
        ("boolean", "integer"): numeric.from_boolean,
        ("boolean", "float"): numeric.from_boolean,
        ("boolean", "decimal"): numeric.from_boolean,
        ("boolean", "text"): text.from_boolean,
        ("integer", "boolean"): numeric.to_boolean,
        ("integer", "integer"): numeric.integer_to_integer,
        ("integer", "float"): numeric.integer_to_float,
        ("integer", "decimal"): numeric.integer_to_decimal,
        ("integer", "text"): text.from_integer,
        ("float", "boolean"): numeric.to_boolean,
        ("float", "integer"): numeric.float_to_integer,
        ("float", "float"): numeric.float_to_float,
        ("float", "decimal"): numeric.float_to_decimal,
        ("decimal", "boolean"): numeric.to_boolean,
        ("decimal", "integer"): numeric.decimal_to_integer,
        ("decimal", "float"): numeric.decimal_to_float,
        ("decimal", "decimal"): numeric.decimal_to_decimal,
        ("decimal", "text"): text.from_decimal,
        ("text", "boolean"): text.to_boolean,
        ("date", "text"): text.from_date,
        ("date", "timestamp"): temporal.date_to_timestamp,
        ("time", "text"): text.from_time,
        ("time", "time"): temporal.time_to_time,
        ("timestamp", "text"): text.from_timestamp,
        ("timestamp", "date"): temporal.timestamp_to_date,
        ("timestamp", "time"): temporal.timestamp_to_time,
        ("timestamp", "timestamp"): temporal.timestamp_to_timestamp,
    }
)
"""By the families of the types; `bamquery.engine.cuda.capabilities` lists those that are missing."""


def cast(kernels: Kernels, argument: Operand, target: pa.DataType, *, try_: bool) -> plc.Column:
    """A column (its datum is one) in another type, no dictionary.

    Raises:
        ExecutionError: a value does not fit, unless `try_`, which makes it null.
    """
    column = argument.datum
    assert isinstance(column, plc.Column)
    if argument.kind == target:
        return column
    if pa.types.is_null(argument.kind):
        return kernels.nulls(column.size(), target)
    source, wanted = family(argument.kind), family(target)
    assert source is not None
    assert wanted is not None
    outcome = CONVERSIONS[source, wanted](kernels, column, argument.kind, target)
    if outcome.failed is None or not kernels.any_true(outcome.failed):
        return outcome.values
    if not try_:
        fail_cast(kernels, argument, target, outcome.failed)
    return kernels.null_where(outcome.failed, outcome.values, target)
