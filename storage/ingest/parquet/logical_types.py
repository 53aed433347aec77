"""Columns of Parquet files whose types Arrow reads otherwise than the format means them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bamquery.storage.format.storable_types import DataType

Reading: TypeAlias = Callable[["pa.Array[Any]"], "pa.Array[Any]"]
"""Makes values of the meant type of those that Arrow gives."""

_INTERVAL_BYTES: Final = 12
_FROM_CONVERTED: Final = "is_from_converted_type=true"
"""In the text of a logical type that the file does not have: it follows from the older, converted type."""
_NANOSECONDS: Final = 1_000_000


def meant_types(file: pq.ParquetFile, schema: pa.Schema) -> tuple[pa.Schema, Mapping[int, Reading]]:
    """The schema as the format means it, and how to read the columns, by position, in which it differs.

    Arrow has no reading of the converted type INTERVAL, and takes timestamps of old writers, which say
    nothing of zones, for UTC; to DuckDB and others these are local times.
    """
    readings: dict[int, Reading] = {}
    leaf = 0
    for place, field in enumerate(schema):
        kind = field.type
        if pa.types.is_fixed_size_binary(kind) and kind.byte_width == _INTERVAL_BYTES:
            if file.schema.column(leaf).converted_type == "INTERVAL":
                readings[place] = _intervals
                schema = schema.set(place, field.with_type(pa.month_day_nano_interval()))
        elif (
            pa.types.is_timestamp(kind)
            and kind.tz is not None
            and _FROM_CONVERTED in str(file.schema.column(leaf).logical_type)
        ):
            readings[place] = _local
            schema = schema.set(place, field.with_type(pa.timestamp(kind.unit)))
        leaf += _leaves(kind)
    return schema, readings


def leaf_places(schema: pa.Schema) -> list[int]:
    """For each column of the file, the place of the field in the schema whose values it holds, or some of."""
    return [place for place, field in enumerate(schema) for _ in range(_leaves(field.type))]


def _leaves(kind: DataType) -> int:
    """How many columns of the file hold the values of one of this type."""
    if kind.num_fields == 0:
        return 1
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields))


def _local(array: Any) -> pa.Array[Any]:
    local: pa.Array[Any] = array.view(pa.timestamp(array.type.unit))
    return local


def _intervals(array: Any) -> pa.Array[Any]:
    """Months, days and milliseconds, of 32 bits each: https://parquet.apache.org/docs/file-format/types/."""
    rows = len(array)
    parts = np.frombuffer(array.buffers()[1], "<i4", 3 * rows, _INTERVAL_BYTES * array.offset).reshape(
        rows, 3
    )
    values = np.empty(rows, [("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    values["months"], values["days"] = parts[:, 0], parts[:, 1]
    values["nanoseconds"] = parts[:, 2].view("<u4").astype("<i8") * _NANOSECONDS
    valid: Any = pc.is_valid(array)
    buffers = [valid.buffers()[1], pa.py_buffer(values.tobytes())]
    found: pa.Array[Any] = pa.Array.from_buffers(pa.month_day_nano_interval(), rows, buffers)
    return found
