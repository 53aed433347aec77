"""WITH RECURSIVE while its steps are small: many of them for each frame that is made."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import slice_frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.recursion.by_row.steps import MOST_JOINED, MOST_MADE, Rows, RowStage, RowStep
from bamquery.engine.operators.recursion.by_row.values import (
    MOST_CHARACTERS,
    LeftToDeviceError,
    column_of,
    rows_of,
)
from bamquery.engine.operators.recursion.small_recursion import SmallRecursion
from bamquery.plan.nodes import Field, Plan

MOST_ROWS: Final = 128
"""Rows of a step: for more, a device is faster."""
TIMES_DISTINCT: Final = 4
"""As many where no row is given twice, which takes a device longer to see."""
MOST_BESIDE_COLUMNS: Final = 32
"""Rows of a step that could also be computed by column, which is faster for more."""
_MOST_SEEN: Final = 1 << 18
_ROW_BYTES: Final = 160
"""Of a tuple, and its place in a set or a dictionary."""
_VALUE_BYTES: Final = 32
_TEXT_BYTES: Final = 50 + MOST_CHARACTERS


def most_rows(*, distinct: bool) -> int:
    """Of a step."""
    return MOST_ROWS * (TIMES_DISTINCT if distinct else 1)


class RowRecursion(SmallRecursion[Frame], Generic[Frame]):
    """See `SmallRecursion`.

    Attributes:
        last: rows of the last step.
        seen: with `distinct` all rows, the first part's too, else empty.
    """

    form = "by_row"
    frame_rows = 1024

    def __init__(
        self,
        context: ExecutionContext[Frame],
        step: RowStep,
        fields: tuple[Field, ...],
        lower: Callable[[Plan], Operator[Frame]],
        most: int,
        *,
        distinct: bool,
    ) -> None:
        """`lower` makes the operators of what the step joins; `most`: rows of a step."""
        super().__init__(context, fields, distinct=distinct)
        self._step = step
        self._lower = lower
        self._most = most
        self._stage: RowStage = list
        self._side_bytes = 0
        self._waiting: Rows = []
        self.last: Rows = []
        self.seen: set[tuple[Any, ...]] = set()

    def begin(self, frames: Iterator[Frame], known: Iterable[Frame] | None) -> bool:
        """Take the last step's rows, and read what the step joins."""
        try:
            self.last = self._rows_from(frames, self._fields, self._most)
            sides = [self._read_side(self._lower(side)) for side in self._step.sides]
            self._stage = self._step.stage(sides)
        except LeftToDeviceError:
            return False
        self.last_rows = len(self.last)
        self._side_bytes = sum(
            len(rows) * _bytes_of_row(side.fields) for rows, side in zip(sides, self._step.sides, strict=True)
        )
        if self._distinct:
            self.seen.update(self.last)
            for frame in known or ():
                self.seen.update(self._rows_from(iter([frame]), self._fields, _MOST_SEEN))
        return True

    def last_frame(self) -> Frame:
        """The last step's rows."""
        return self._frame(self.last)

    def _take_waiting(self) -> Frame:
        waiting, self._waiting = self._waiting, []
        return self._frame(waiting)

    def _frame(self, rows: Rows) -> Frame:
        """One or more rows as the device has them."""
        columns = zip(*rows, strict=True)
        arrays = [column_of(c, f.type) for c, f in zip(columns, self._fields, strict=True)]
        names = [field.name for field in self._fields]
        return self._context.device.from_arrow(pa.RecordBatch.from_arrays(arrays, names))

    def take_distinct_rows(self) -> Generator[Frame, None, None]:
        """The different rows so far."""
        rows = list(self.seen)
        self.seen = set()
        if rows:
            yield from slice_frame(self._context.device, self._frame(rows))

    def _advance(self) -> bool:
        if len(self.last) > self._most or len(self.seen) > _MOST_SEEN:
            return False
        try:
            made = self._stage(self.last)
        except LeftToDeviceError:
            return False
        if self._distinct:
            made = [row for row in dict.fromkeys(made) if row not in self.seen]
            self.seen.update(made)
        self.last = made
        self._count_step(len(made))
        self._waiting.extend(made)
        return True

    def _bytes(self, waiting: int) -> int:
        rows = len(self.seen) + waiting + 2 * MOST_MADE
        return rows * _bytes_of_row(self._fields) + self._side_bytes

    def _read_side(self, side: Operator[Frame]) -> Rows:
        with closing(side.frames(self._context)) as frames:
            return self._rows_from(frames, side.fields, MOST_JOINED)

    def _rows_from(self, frames: Iterator[Frame], fields: Sequence[Field], most: int) -> Rows:
        device = self._context.device
        found: Rows = []
        for frame in frames:
            if len(found) + device.row_count(frame) > most:
                raise LeftToDeviceError
            found.extend(rows_of(device.to_arrow(frame, fields).columns, device.row_count(frame)))
        return found


def _bytes_of_row(fields: Sequence[Field]) -> int:
    sizes = (_TEXT_BYTES if field.type == pa.large_string() else _VALUE_BYTES for field in fields)
    return _ROW_BYTES + sum(sizes)
