"""Rows of Arrow batches as Python values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.errors import ExecutionError


def python_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """One tuple a row: None, bool, int, float, Decimal, str, bytes, date, time, datetime.

    Nanoseconds are cut to microseconds, which is as fine as Python's types are.

    Raises:
        ExecutionError: a date or timestamp outside of Python's years, 1 to 9999.
    """
    columns = [
        _python_column(field.name, column) for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return zip(*columns, strict=True)


def _python_column(name: str, column: pa.Array[Any]) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # as_py() would make pandas timestamps of these, or fail where pandas is missing.
        column = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
    elif kind == pa.time64("ns"):
        column = pc.cast(column, pa.time64("us"), safe=False)
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise ExecutionError(
            f'column "{name}" holds dates outside of Python\'s years 1 to 9999: '
            "take the rows with to_arrow(), or cast the column to VARCHAR"
        ) from error
    return values
