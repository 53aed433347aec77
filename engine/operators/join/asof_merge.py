"""ASOF joins of more rows than fit in memory: both sides sorted together, by files, and read in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Frame, HostPositions
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within
from bamquery.engine.operators.base.frame_sizing import coalesce_frames
from bamquery.engine.operators.join.pairs import null_columns
from bamquery.engine.operators.sort.external_sort import sort_rows
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field, SortKey

Nearest = Callable[[Sequence[Frame], HostPositions, HostPositions], HostPositions]

_MARKS: Final = (Field("side", pa.int8()), Field("usable", pa.bool_()))


class AsofMerge(Generic[Frame]):
    """Rows of both sides as rows of one table: values, marks, columns of the left, columns of the right.

    Args:
        sides: columns of the left and of the right rows.
        values: over each side, the keys and what is compared; of the same types.
        usable: over the values, whether a row can have a partner.
        order: over the values and the side's mark, which comes after them.
        right_first: whether a right row stands before a left row of its values.
        nearest: which of the rows found have equal keys, -1 for others; takes both sides' values.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        sides: tuple[Sequence[Field], Sequence[Field]],
        values: tuple[Sequence[Expression], Sequence[Expression]],
        *,
        usable: Expression,
        order: Sequence[SortKey],
        right_first: bool,
        keeps_left: bool,
        nearest: Nearest[Frame],
    ) -> None:
        self._context = context
        self._sides = sides
        self._values = values
        self._usable = usable
        self._order = order
        self._right_mark = 0 if right_first else 1
        self._keeps_left = keeps_left
        self._nearest = nearest
        self._width = len(values[0])
        value_fields = [Field("value", value.type) for value in values[0]]
        self._fields = (*value_fields, *_MARKS, *sides[0], *sides[1])

    def join(
        self,
        left: Iterable[Frame],
        right: Iterable[Frame],
        memory: Reservation,
        profile: OperatorProfile,
    ) -> Generator[Frame, None, None]:
        """The rows of the left side with the nearest of the right one, in the values' order.

        Raises:
            ExecutionError: a value cannot be computed.
            StorageError: the folder has no room for the rows.
        """
        context = self._context
        carried: Frame | None = None  # the last row of the right side so far
        with (
            closing(self._tagged_sides(left, right)) as both,
            closing(coalesce_frames(context, both)) as chunks,
            closing(
                sort_rows(context, chunks, self._fields, self._order, memory=memory, profile=profile)
            ) as ordered,
        ):
            for frame in ordered:
                rows, positions, found, last = self._pairs(frame, carried)
                with closing(self._side_by_side(rows, positions, found)) as answers:
                    yield from answers
                if last >= 0:
                    carried = context.device.take(rows, np.array([last], np.int64))
                del rows

    def _tagged_sides(self, left: Iterable[Frame], right: Iterable[Frame]) -> Generator[Frame, None, None]:
        device = self._context.device
        for side, frames in ((1, right), (0, left)):
            other = device.empty(self._sides[1 - side])
            for frame in frames:
                values = device.evaluate(self._values[side], frame)
                mark = self._right_mark if side == 1 else 1 - self._right_mark
                marks = device.evaluate([Literal(pa.scalar(mark, pa.int8())), self._usable], values)
                nulls = null_columns(device, other, device.row_count(frame))
                columns = [values, marks, *([nulls, frame] if side == 1 else [frame, nulls])]
                rows = device.join_columns(columns)
                if side == 1 or not self._keeps_left:
                    rows = device.filter(rows, ColumnRef(self._width + 1, "usable", pa.bool_()))
                yield rows

    def _pairs(self, frame: Frame, carried: Frame | None) -> tuple[Frame, HostPositions, HostPositions, int]:
        """Left rows and their partners among the right row so far and some rows, and the last right one.

        Partners are -1 for rows without one, the last right row where there is none.
        """
        device, width = self._context.device, self._width
        if carried is None:
            carried = device.take_or_null(frame, np.full(1, -1, np.int64))
        rows = device.concatenate([carried, frame])
        batch: Any = device.to_arrow(device.select(rows, [width, width + 1]), _MARKS)
        of_right = batch.column(0).to_numpy(zero_copy_only=False) == self._right_mark
        usable = batch.column(1).to_numpy(zero_copy_only=False) == True  # noqa: E712 (the first may be null)
        before = np.maximum.accumulate(np.where(of_right, np.arange(len(of_right)), -1))
        positions = np.flatnonzero(~of_right[1:]) + 1
        found = np.where(usable[positions], before[positions], -1)
        keys = device.select(rows, range(width))
        found = self._nearest((keys, keys), positions, found)
        if not self._keeps_left:
            positions, found = positions[found >= 0], found[found >= 0]
        return rows, positions, found, int(before[-1])

    def _side_by_side(
        self, rows: Frame, positions: HostPositions, found: HostPositions
    ) -> Generator[Frame, None, None]:
        """Left rows beside right ones, by as many at once as fit."""
        device = self._context.device
        first = self._width + len(_MARKS)
        middle, end = first + len(self._sides[0]), len(self._fields)
        left, right = (
            CopiedRows(device, device.select(rows, range(*ends))) for ends in ((first, middle), (middle, end))
        )
        for some in portions_within([(left, positions), (right, found)], self._context.string_limits.piece):
            self._context.check_cancelled()
            yield device.join_columns(
                [device.take(left.frame, positions[some]), device.take_or_null(right.frame, found[some])]
            )
