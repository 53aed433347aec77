"""Columns of an answer under types that pandas and NumPy have: by the column's type, never by its values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.casts.to_string import from_date
from bamquery.engine.formulas.time_units import units_per_day
from bamquery.errors import ExecutionError
from bamquery.relations.frames.frame_options import Decimals, HugeInts
from bamquery.relations.frames.python_values import python_values

HUGEINT: Final = pa.decimal128(38, 0)
_INSTANT: Final = pa.timestamp("us")
_SPAN: Final = pa.duration("us")
_DAYS_PER_MONTH: Final = 30
_PARTS: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_LARGEST: Final = 2**63 - 1


def host_column(name: str, column: Any, hugeint: HugeInts, decimals: Decimals) -> Any:
    """A chunked array of a type that numbers and times have elsewhere, too; most are as they were.

    DATE becomes a timestamp of microseconds, INTERVAL a duration (a month has 30 days), DECIMAL and HUGEINT
    as chosen, a dictionary of anything but strings its values.

    Raises:
        ExecutionError: a value is beyond what the new type holds; names the column and the way out.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) and not _is_string(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_date32(kind):
        return _map_chunks(column, _INSTANT, lambda chunk: _instants(name, chunk))
    if pa.types.is_interval(kind):
        return _map_chunks(column, _SPAN, lambda chunk: _spans(name, chunk))
    if kind == HUGEINT and hugeint == "int64":
        return _map_chunks(column, pa.int64(), lambda chunk: _integers(name, chunk))
    if (kind == HUGEINT and hugeint == "float64") or (
        kind != HUGEINT and pa.types.is_decimal128(kind) and decimals == "float"
    ):
        return _map_chunks(column, pa.float64(), lambda chunk: cast(chunk, pa.float64(), try_=False))
    return column


def is_python_values(kind: pa.DataType) -> bool:
    """Whether a host column of that type is one of Python's objects that Arrow does not make right."""
    return pa.types.is_time(kind) or kind == HUGEINT


def objects(name: str, column: Any) -> np.ndarray[Any, Any]:
    """The values as Python has them (`relations.frames.python_values.python_rows`), None for null."""
    values = [value for chunk in column.chunks for value in python_values(name, chunk)]
    array = np.empty(len(values), object)
    array[:] = values
    return array


def unreadable_days(name: str) -> ExecutionError:
    """For times of day that a library has no room for: 24:00:00."""
    return ExecutionError(
        f'column "{name}" holds the time 24:00:00, which does not exist there: cast it to VARCHAR, or take '
        "to_arrow()"
    )


def has_end_of_day(column: Any) -> bool:
    """Whether a column of times holds 24:00:00."""
    counts = pa.int64() if column.type.bit_width == 64 else pa.int32()
    end = pa.scalar(units_per_day(column.type), counts)
    return any(pc.any(pc.equal(chunk.view(counts), end)).as_py() for chunk in column.chunks)


def _map_chunks(column: Any, kind: pa.DataType, convert: Any) -> Any:
    chunks: Any = [convert(chunk) for chunk in column.chunks]
    of_kind: Any = kind
    return pa.chunked_array(chunks, of_kind)


def _instants(name: str, chunk: Any) -> Any:
    per_day = units_per_day(_INSTANT)
    days = chunk.view(pa.int32())
    extremes: Any = pc.min_max(days).as_py()
    for day in (extremes["min"], extremes["max"]):
        if day is not None and abs(day) > _LARGEST // per_day:
            text = from_date(pa.array([day], pa.int32()).view(pa.date32()), pa.large_string()).values[0]
            raise ExecutionError(
                f'column "{name}" holds {text}, which is too far away for microseconds: '
                "cast it to VARCHAR, or take to_arrow() or to_polars()"
            )
    return pc.multiply(days.cast(pa.int64()), pa.scalar(per_day, pa.int64())).view(_INSTANT)


def _spans(name: str, chunk: Any) -> Any:
    data = chunk.buffers()[1]
    parts = np.frombuffer(data, _PARTS, len(chunk), chunk.offset * _PARTS.itemsize) if len(chunk) else _NONE
    present = ~np.asarray(chunk.is_null())
    days = np.where(present, parts["months"].astype(np.int64) * _DAYS_PER_MONTH + parts["days"], 0)
    rest = np.where(present, parts["nanoseconds"] // 1000, 0)
    per_day = units_per_day(_INSTANT)
    # A day is left for what is less than one: nanoseconds alone fit by far.
    if len(days) and np.abs(days).max() > _LARGEST // per_day - np.abs(rest).max() // per_day - 1:
        raise ExecutionError(
            f'column "{name}" holds intervals that are too long for microseconds: '
            "cast it to VARCHAR, or take to_arrow()"
        )
    return pa.array(days * per_day + rest, pa.int64(), mask=~present).view(_SPAN)


def _integers(name: str, chunk: Any) -> Any:
    try:
        return chunk.cast(pa.int64())
    except pa.ArrowInvalid:
        raise ExecutionError(
            f'column "{name}" holds a HUGEINT that does not fit int64: take hugeint="float64" or "object"'
        ) from None


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


_NONE: Final = np.empty(0, _PARTS)
