"""Columns of intervals: months, days and microseconds, each of its own (Arrow stores nanoseconds)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from typing import cast as typed

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.type_groups import HUGEINT, INTERVAL
from bamquery.engine.cpu.kernels import (
    Column,
    Constant,
    Datum,
    as_column,
    boolean_values,
    compute,
    from_buffer,
    operand,
    valid_rows,
)
from bamquery.errors import ExecutionError

DAYS_PER_MONTH: Final = 30
DAY_MICROSECONDS: Final = 86_400 * 10**6
MONTH_MICROSECONDS: Final = DAYS_PER_MONTH * DAY_MICROSECONDS
SMALLEST_PART, LARGEST_PART = -(2**31), 2**31 - 1
"""Of months and of days."""
MOST_MONTHS: Final = 12 * 6_000_000
"""Beyond every month of a moment, and still no overflow in days."""
UNIT_MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
)
UNIT_DAYS: Final[Mapping[str, int]] = MappingProxyType({"day": 1, "week": 7})
UNIT_MICROSECONDS: Final[Mapping[str, int]] = MappingProxyType(
    {"microsecond": 1, "millisecond": 10**3, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
)

_STORED: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_MOST_MICROSECONDS: Final = (2**63 - 1) // 1000
Integers = NDArray[np.int64]


def known_rows(*masks: Column | None) -> Column | None:
    """Where all of them are true; None is everywhere."""
    found = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else compute("and", found, mask)
    return found


def known_mask(known: Column | None, rows: int) -> NDArray[np.bool_]:
    """The same as an array, for so many rows."""
    return np.ones(rows, np.bool_) if known is None else boolean_values(known)


def moment_values(datum: Datum, rows: int) -> tuple[Integers, Column | None]:
    """The stored integers of moments or numbers, and where they are valid."""
    column = as_column(datum, rows)
    return np.asarray(operand(column)).astype(np.int64), valid_rows(column)


@dataclass(frozen=True)
class Intervals:
    """Parts of intervals, row by row; anything where `known` (None: everywhere) is false."""

    months: Integers
    days: Integers
    microseconds: Integers
    known: Column | None

    @classmethod
    def from_datum(cls, datum: Datum, rows: int) -> Intervals:
        """A column's, or a constant's for so many rows."""
        column = as_column(datum, rows)
        buffer = column.buffers()[1]
        if buffer is None:
            nothing = np.zeros(len(column), np.int64)
            return cls(nothing, nothing, nothing, valid_rows(column))
        start, count = 16 * column.offset, len(column)
        stored: Any = np.frombuffer(memoryview(buffer), _STORED, count=count, offset=start)
        micros = stored["nanoseconds"] // 1000
        return cls(
            stored["months"].astype(np.int64), stored["days"].astype(np.int64), micros, valid_rows(column)
        )

    def column(self, what: str) -> Column:
        """As a column.

        Raises:
            ExecutionError: a part does not fit; `what` was computed.
        """
        failed = np.zeros(len(self.months), np.bool_)
        for part in (self.months, self.days):
            failed |= (part < SMALLEST_PART) | (part > LARGEST_PART)
        failed |= (self.microseconds > _MOST_MICROSECONDS) | (self.microseconds < -_MOST_MICROSECONDS)
        if self.known is not None:
            failed &= boolean_values(self.known)
        if failed.any():
            row = int(np.argmax(failed))
            raise ExecutionError(
                f"INTERVAL overflow in {what}: {self.months[row]} months, {self.days[row]} days and "
                f"{self.microseconds[row]} microseconds are more than an INTERVAL holds here"
            )
        stored = np.zeros(len(self.months), _STORED)
        stored["months"], stored["days"] = self.months, self.days
        with np.errstate(over="ignore"):
            stored["nanoseconds"] = self.microseconds * 1000
        return from_buffer(pa.py_buffer(stored.tobytes()), len(stored), INTERVAL, self.known)

    def total_days(self) -> Integers:
        """Days, a month taken for 30 of them, as far as whole ones go."""
        return self.months * DAYS_PER_MONTH + self.days + self.microseconds // DAY_MICROSECONDS

    def normalize(self) -> Intervals:
        """30 days as a month, 24 hours as a day; days and microseconds are not negative."""
        total = self.total_days()
        rest = self.microseconds % DAY_MICROSECONDS
        return Intervals(total // DAYS_PER_MONTH, total % DAYS_PER_MONTH, rest, self.known)


def order_key(column: Column) -> Column:
    """Numbers that order as intervals do."""
    parts = Intervals.from_datum(column, len(column))
    days, rest = parts.total_days(), parts.microseconds % DAY_MICROSECONDS
    # The rest is below 2**40, so days and rest fit side by side.
    words = np.stack([((days & (2**24 - 1)) << 40) + rest, days >> 24], axis=1)
    return from_buffer(pa.py_buffer(words.tobytes()), len(column), HUGEINT, parts.known)


def comparable(datum: Datum) -> Datum:
    """What Arrow compares: numbers for intervals, all else as it is."""
    if datum.type != INTERVAL:
        return datum
    if isinstance(datum, pa.Array):
        return order_key(datum)
    key: Any = order_key(as_column(datum, 1))
    return typed(Constant, key[0])
