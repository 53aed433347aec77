"""WITH RECURSIVE while its steps are columns of numpy, which take a few microseconds each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import slice_frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.recursion.by_column.distinct_rows import DistinctRows
from bamquery.engine.operators.recursion.by_column.steps import (
    MOST_JOINED,
    ColumnStage,
    ColumnStep,
    Side,
    StepInputs,
)
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    Columns,
    column_from_arrow,
    columns_to_arrow,
    keep,
    numpy_type,
)
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError
from bamquery.engine.operators.recursion.small_recursion import SmallRecursion
from bamquery.plan.nodes import Field, Plan

_FEWEST_ROWS: Final = 8
_FEWEST_LOOKED_UP: Final = 16
"""The same where rows are looked up: for a join, a group, or UNION."""
MOST_ROWS: Final = 1 << 17
"""For more, operators cost little beside what they compute, on all threads."""
_MOST_MADE: Final = 1 << 20
"""Rows that a join may give."""
_PART_PACKED: Final = 4
"""Of as many rows where they are told apart as bytes: sets of Python take longer than a device then."""
MOST_CODED: Final = 1 << 24
MOST_PACKED: Final = 1 << 22
"""Rows that are told apart, as numbers and as bytes: for more, a device takes less memory."""
_SPARE: Final = 4
"""Part of what is held that is asked for beside it: to ask takes as long as some calls of numpy."""
_MADE: Final = 4
"""Times that the columns of a step are there at once: those before, behind and on the way."""


def fewest_rows(step: ColumnStep, *, distinct: bool) -> int:
    """Rows of the first part: fewer are faster one by one."""
    return _FEWEST_ROWS if step.is_plain and not distinct else _FEWEST_LOOKED_UP


class ColumnRecursion(SmallRecursion[Frame], Generic[Frame]):
    """See `SmallRecursion`."""

    form = "by_column"
    frame_rows = 1 << 15

    def __init__(
        self,
        context: ExecutionContext[Frame],
        step: ColumnStep,
        fields: tuple[Field, ...],
        lower: Callable[[Plan], Operator[Frame]],
        *,
        distinct: bool,
    ) -> None:
        """`lower` makes the operators of what the step joins."""
        super().__init__(context, fields, distinct=distinct)
        self._step = step
        self._lower = lower
        self._kinds = [field.type for field in fields]
        self._row_bytes = sum(numpy_type(kind).itemsize + 1 for kind in self._kinds)
        self._texts = TextCodes()
        self._seen = DistinctRows(self._kinds) if distinct else None
        self._stage: ColumnStage | None = None
        self._side_bytes = 0
        self._reserved_rows = 0
        self._last: Columns = ()
        self._waiting: list[Columns] = []

    def begin(self, frames: Iterator[Frame], known: Iterable[Frame] | None) -> bool:
        """Take the last step's rows, and read what the step joins."""
        try:
            make = self._step.make(self._texts)
            self._last, self.last_rows = self._columns_of(list(frames), self._fields)
            if self.last_rows > MOST_ROWS:
                return False
            sides = [self._read_side(self._lower(side)) for side in self._step.sides]
            inputs = StepInputs(sides, self._reserve)
            self._stage = make(inputs)
            self._side_bytes = inputs.nbytes
            if self._seen is not None:
                for frame in known or ():
                    self._seen.add(self._columns_of([frame], self._fields)[0])
                self._seen.add(self._last)
        except LeftToDeviceError:
            return False
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
        if not self._is_for_columns():
            return False
        assert self._stage is not None
        try:
            if self.last_rows > self._reserved_rows:
                self._reserve(0)
            made, rows = self._stage(self._last, self.last_rows)
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

    def _is_for_columns(self) -> bool:
        seen = self._seen
        if seen is None:
            return self.last_rows <= MOST_ROWS
        if seen.is_coded:
            return self.last_rows <= MOST_ROWS and len(seen) <= MOST_CODED
        return self.last_rows <= MOST_ROWS // _PART_PACKED and len(seen) <= MOST_PACKED

    def _take_waiting(self) -> Frame:
        waiting, self._waiting = self._waiting, []
        self._reserved_rows = 0  # what is kept beside a step's rows has grown
        return self._frame(waiting)

    def _frame(self, parts: Sequence[Columns]) -> Frame:
        pairs = zip(zip(*parts, strict=True), self._kinds, strict=True)
        arrays = [columns_to_arrow(columns, kind, self._texts) for columns, kind in pairs]
        names = [field.name for field in self._fields]
        return self._context.device.from_arrow(pa.RecordBatch.from_arrays(arrays, names))

    def _reserve(self, made: int) -> None:
        """Memory for the step that runs, in which a join gives so many rows."""
        if made > _MOST_MADE:
            raise LeftToDeviceError
        needed = self._bytes(self._waiting_rows) + _MADE * made * self._step.row_bytes
        if needed > self._memory.held and not self._memory.fits(needed + needed // _SPARE):
            raise LeftToDeviceError
        self._reserved_rows = max(self._reserved_rows, self.last_rows)

    def _bytes(self, waiting: int) -> int:
        size = (2 * waiting + _MADE * self.last_rows) * self._row_bytes + self._side_bytes
        size += self._texts.nbytes
        if self._seen is not None:
            size += self._seen.nbytes_with(waiting + self.last_rows)
        return size

    def _read_side(self, side: Operator[Frame]) -> Side:
        device, held, rows = self._context.device, 0, 0
        kept: list[Frame] = []
        with closing(side.frames(self._context)) as frames:
            for frame in frames:
                rows += device.row_count(frame)
                held += 2 * device.nbytes(frame)
                if rows > MOST_JOINED or not self._memory.fits(self._side_bytes + held):
                    raise LeftToDeviceError
                kept.append(frame)
        self._side_bytes += held
        return self._columns_of(kept, side.fields)

    def _columns_of(self, frames: list[Frame], fields: Sequence[Field]) -> Side:
        device = self._context.device
        whole = device.concatenate(frames) if frames else device.empty(fields)
        columns: Sequence[Any] = device.to_arrow(whole, fields).columns
        return [column_from_arrow(column, self._texts) for column in columns], device.row_count(whole)
