"""WITH RECURSIVE while its steps are columns of numpy, which take a few microseconds each."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import slice_frame
from bamquery.engine.operators.recursion.column_steps import ColumnStage
from bamquery.engine.operators.recursion.column_values import (
    Column,
    column_from_arrow,
    columns_to_arrow,
    keep,
    numpy_type,
)
from bamquery.engine.operators.recursion.packed_rows import PackedRows
from bamquery.engine.operators.recursion.row_values import LeftToDeviceError
from bamquery.engine.operators.recursion.small_recursion import SmallRecursion
from bamquery.plan.nodes import Field

FEWEST_ROWS: Final = 8
"""Rows of the first part: fewer are faster one by one."""
MOST_ROWS: Final = 1 << 15
"""For more, operators cost little beside what they compute, on all threads."""
_PART_DISTINCT: Final = 4
"""Of as many where no row is given twice: sets of Python take longer than a device then."""
MOST_DISTINCT: Final = 1 << 22
"""Rows that are told apart by Python: for more, a device takes less memory."""
_MADE: Final = 4
"""Times that the columns of a step are there at once: those before, behind and on the way."""


def most_rows(*, distinct: bool) -> int:
    """Of the first part."""
    return MOST_ROWS // (_PART_DISTINCT if distinct else 1)


class ColumnRecursion(SmallRecursion[Frame], Generic[Frame]):
    """See `SmallRecursion`. A step has at most as many rows as the one before."""

    form = "by_column"
    frame_rows = 1 << 15

    def __init__(
        self,
        context: ExecutionContext[Frame],
        step: ColumnStage,
        fields: tuple[Field, ...],
        *,
        distinct: bool,
    ) -> None:
        super().__init__(context, fields, distinct=distinct)
        self._step = step
        self._kinds = [field.type for field in fields]
        self._row_bytes = sum(numpy_type(kind).itemsize + 1 for kind in self._kinds)
        self._seen = PackedRows(self._kinds) if distinct else None
        self._last: Sequence[Column] = ()
        self._waiting: list[Sequence[Column]] = []

    def begin(self, frames: Iterator[Frame]) -> bool:
        """Take the first part's rows; with `distinct` they are different."""
        device = self._context.device
        whole = device.concatenate(list(frames))
        try:
            columns = device.to_arrow(whole, self._fields).columns
            self._last = [column_from_arrow(column) for column in columns]
        except LeftToDeviceError:
            return False
        self.last_rows = device.row_count(whole)
        if self._seen is not None:
            self._seen.add(self._last)
        return True

    def last_frame(self) -> Frame:
        """The last step's rows."""
        return self._frame([self._last])

    def take_distinct_rows(self) -> Generator[Frame, None, None]:
        """The different rows so far, let go of as they are given."""
        if self._seen is not None:
            for columns in self._seen.drain():
                yield from slice_frame(self._context.device, self._frame([columns]))

    def _advance(self) -> bool:
        # Steps of one row are as many as a frame has rows, and take a second.
        self._context.check_cancelled()
        if self._seen is not None and len(self._seen) > MOST_DISTINCT:
            return False
        try:
            made, rows = self._step(self._last, self.last_rows)
        except LeftToDeviceError:
            return False
        if rows and self._seen is not None:
            new = self._seen.add(made)
            if new is not None:
                made, rows = [keep(column, new) for column in made], len(new)
        self._last = made
        self._count_step(rows)
        if rows:
            self._waiting.append(made)
        return True

    def _take_waiting(self) -> Frame:
        waiting, self._waiting = self._waiting, []
        return self._frame(waiting)

    def _frame(self, parts: Sequence[Sequence[Column]]) -> Frame:
        columns = zip(*parts, strict=True)
        arrays = [columns_to_arrow(column, kind) for column, kind in zip(columns, self._kinds, strict=True)]
        names = [field.name for field in self._fields]
        return self._context.device.from_arrow(pa.RecordBatch.from_arrays(arrays, names))

    def _bytes(self, waiting: int) -> int:
        size = (2 * waiting + _MADE * self.last_rows) * self._row_bytes
        if self._seen is not None:
            size += (len(self._seen) + waiting + self.last_rows) * self._seen.bytes_of_row
        return size
