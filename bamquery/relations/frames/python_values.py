"""Rows of Arrow batches as Python values."""

# ruff: noqa: PLC0415 (most values need nothing computed)

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.formulas.time_units import units_per_day
from bamquery.errors import BamQueryError, ExecutionError
from bamquery.plan.nodes import Field

_DAYS_PER_MONTH: Final = 30


def python_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """One tuple a row: None, bool, int, float, Decimal, str, bytes, date, time, datetime, timedelta.

    Nanoseconds are cut to microseconds, which is as fine as Python's types are. HUGEINT is an int. A month of
    an interval has 30 days. What Python's types cannot hold, dates outside of the years 1 to 9999 and the
    time 24:00:00, is text.

    Raises:
        ExecutionError: an interval that is longer than Python's can be.
    """
    columns = [
        python_values(field.name, column) for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return zip(*columns, strict=True)


def require_polars_types(fields: Sequence[Field]) -> None:
    """Refuse, before anything is read, what no polars frame can hold.

    Raises:
        BamQueryError: an INTERVAL; says which.
    """
    for field in fields:
        if pa.types.is_interval(field.type):
            raise BamQueryError(
                f'column "{field.name}" is an INTERVAL, which polars has no type for: '
                "cast it to VARCHAR, or take to_arrow()"
            )


def python_values(name: str, column: pa.Array[Any]) -> list[Any]:
    """One column's values; see `python_rows`.

    Raises:
        ExecutionError: as `python_rows`.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return python_values(name, column.dictionary_decode())  # type: ignore[attr-defined]
    if pa.types.is_interval(kind):
        return _intervals(name, column)
    if kind == pa.decimal128(38, 0):
        return [None if value is None else int(value) for value in column.to_pylist()]
    if pa.types.is_time(kind):
        return _times(column)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        import pyarrow.compute as pc

        # as_py() would make pandas timestamps of these, or fail where pandas is missing.
        column = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return _far_dates(column)


def _far_dates(column: pa.Array[Any]) -> list[Any]:
    """Dates or timestamps of which some are beyond Python's years, those as text."""
    from bamquery.engine.cpu.casts.to_string import from_date, from_timestamp

    write = from_date if pa.types.is_date(column.type) else from_timestamp
    strings = write(column, pa.large_string()).values

    def value(place: int) -> Any:
        try:
            return column[place].as_py()
        except (OverflowError, ValueError):
            return strings[place].as_py()

    return [value(place) for place in range(len(column))]


def _times(column: pa.Array[Any]) -> list[Any]:
    import pyarrow.compute as pc

    column = pc.cast(column, pa.time64("us"), safe=False)
    values: list[Any] = column.to_pylist()
    at_end = pc.equal(column.view(pa.int64()), pa.scalar(units_per_day(column.type), pa.int64()))
    for place in pc.indices_nonzero(at_end).to_numpy():
        values[place] = "24:00:00"  # Python's times end before it, and pyarrow begins again at 0
    return values


def _intervals(name: str, column: pa.Array[Any]) -> list[Any]:
    try:
        return [None if span is None else _duration(span) for span in column.to_pylist()]
    except OverflowError as error:
        raise ExecutionError(
            f'column "{name}" holds intervals that are too long for Python: '
            "take the rows with to_arrow(), or cast the column to VARCHAR"
        ) from error


def _duration(span: Any) -> timedelta:
    days = span.months * _DAYS_PER_MONTH + span.days
    return timedelta(days=days, microseconds=span.nanoseconds // 1000)


def whole_number(value: object, argument: str) -> int:
    """An argument that counts something.

    Raises:
        TypeError: it is no whole number. ValueError: it is negative.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument} is a whole number, not {type(value).__name__}") from None
    if number < 0:
        raise ValueError(f"{argument} cannot be negative")
    return number
