"""ASOF joins: each row with the one before it, or after it, on the other side."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from typing import Any, Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Device, Frame, HostPositions
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.string_limits import current_string_limits
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import FRAME_ROWS, coalesce_frames, drain_list
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.asof_merge import AsofMerge
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import Call, ColumnRef, Expression, referenced_columns
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field, SortKey
from bamquery.plan.rewriting import conjunction

_MARKS: Final = (Field("side", pa.int8()), Field("position", pa.int64()))
_COPIES: Final = 3
"""Times that rows are in memory: they, their values in order, and the answer."""


class AsofJoin(Operator[Frame], Generic[Frame]):
    """Each row of the first child with the nearest row of the second; what does not fit goes to files.

    The values of both sides are sorted together, so the nearest row of the other side is the last one
    before a row, if their keys are equal. Among several that are equally near it is any.
    """

    reservations = 1

    def __init__(
        self,
        left: Operator[Frame],
        right: Operator[Frame],
        keys: Sequence[tuple[Expression, Expression, bool]],
        inequality: tuple[str, Expression, Expression],
        fields: tuple[Field, ...],
        *,
        keeps_left: bool,
    ) -> None:
        """Keys and inequality compare expressions over the left with such over the right child's columns.

        `keeps_left`: rows without a partner come, too.
        """
        self._function, *nearest = inequality
        self._values: tuple[list[Expression], list[Expression]] = (
            [*(mine for mine, _, _ in keys), nearest[0]],
            [*(other for _, other, _ in keys), nearest[1]],
        )
        self._nulls_equal = [*(equal for _, _, equal in keys), False]
        details = {
            "kind": "left" if keeps_left else "inner",
            "values": [format_expression(value) for value in self._values[0]],
        }
        super().__init__(fields, (left, right), OperatorProfile("ASOF join", details))
        self._keeps_left = keeps_left

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """Each of the left child's rows is answered for itself."""
        width = len(self.children[0].fields)
        of_left = all(index < width for index in referenced_columns(value))
        return of_left and self.children[0].push_dynamic_filter(value, dynamic_filter)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows of the left child, once all of both have come; in their order if that fits in memory."""
        device = context.device
        with context.memory.reservation("ASOF JOIN") as memory, ExitStack() as stack:
            kept: list[list[Frame]] = [[], []]
            streams: list[Generator[Frame, None, None]] = []
            fits = True
            for side in (1, 0):
                frames = stack.enter_context(closing(self.children[side].frames(context)))
                streams.insert(0, stack.enter_context(closing(coalesce_frames(context, frames))))
                fits = fits and self._collect_sorted(context, streams[0], kept[side], memory)
            if not fits:
                of_left, of_right = (chain(drain_list(k), new) for k, new in zip(kept, streams, strict=True))
                rows = self._merge_runs(context).join(of_left, of_right, memory, self.profile)
                yield from stack.enter_context(closing(rows))
                return
            left, right = (
                device.concatenate([device.empty(child.fields), *drain_list(frames)])
                for child, frames in zip(self.children, kept, strict=True)
            )
            yield from self._join_in_memory(context, left, right, memory)

    def _join_in_memory(
        self, context: ExecutionContext[Frame], left: Frame, right: Frame, memory: Reservation
    ) -> Generator[Frame, None, None]:
        device = context.device
        values = [device.evaluate(v, f) for v, f in zip(self._values, (left, right), strict=True)]
        nearest = self._nearest_rows(device, values)
        copies = CopiedRows(device, left), CopiedRows(device, right)
        self.profile.details["peak_memory"] = memory.peak
        for start in range(0, len(nearest), FRAME_ROWS):
            positions = np.arange(start, min(start + FRAME_ROWS, len(nearest)))
            found = self._drop_unequal_keys(device, values, positions, nearest[positions])
            if not self._keeps_left:
                positions, found = positions[found >= 0], found[found >= 0]
            for some in portions_within(
                list(zip(copies, (positions, found), strict=True)), context.string_limits.piece
            ):
                context.check_cancelled()
                yield device.join_columns(
                    [device.take(left, positions[some]), device.take_or_null(right, found[some])]
                )

    def _collect_sorted(
        self,
        context: ExecutionContext[Frame],
        chunks: Iterable[Frame],
        kept: list[Frame],
        memory: Reservation,
    ) -> bool:
        """Take chunks as long as they, their values, these sorted, and the answer fit in memory."""
        for chunk in chunks:
            kept.append(chunk)
            wanted = memory.held + _COPIES * context.device.nbytes(chunk)
            if not memory.fits(wanted):
                if context.spill_folder is None:
                    memory.resize(wanted)
                return False
        return True

    def _merge_runs(self, context: ExecutionContext[Frame]) -> AsofMerge[Frame]:
        left, right = self.children
        return AsofMerge(
            context,
            (left.fields, right.fields),
            self._values,
            usable=self._usable(),
            order=self._order(),
            right_first=self._inclusive,
            keeps_left=self._keeps_left,
            nearest=partial(self._drop_unequal_keys, context.device),
        )

    @property
    def _inclusive(self) -> bool:
        return self._function in ("greater_equal", "less_equal")

    def _order(self) -> list[SortKey]:
        """Over the values and the mark of the side after them."""
        *keys, last = self._columns(0)
        order = [SortKey(key) for key in keys]
        order.append(SortKey(last, descending=self._function.startswith("less")))
        return [*order, SortKey(ColumnRef(len(self._nulls_equal), "side", pa.int8()))]

    def _nearest_rows(self, device: Device[Frame], values: Sequence[Frame]) -> HostPositions:
        """For each row of the left side the last of the right side before it, or -1; keys may differ."""
        inclusive = self._inclusive
        marked = []
        for side, frame in enumerate(values):
            rows = device.row_count(frame)
            first = (side == 1) == inclusive  # at equal values, which side comes first
            sides = np.full(rows, 0 if first else 1, np.int8)
            columns: list[Any] = [pa.array(sides), pa.array(np.arange(rows))]
            marks = device.from_arrow(pa.RecordBatch.from_arrays(columns, names=["side", "position"]))
            marked.append(device.filter(device.join_columns([frame, marks]), self._usable()))
        both = device.sort(device.concatenate(marked), self._order())
        width = len(self._nulls_equal)
        batch = device.to_arrow(device.select(both, [width, width + 1]), _MARKS)
        sides, places = (np.asarray(column) for column in batch.columns)
        of_right = sides == (0 if inclusive else 1)
        before = np.maximum.accumulate(np.where(of_right, np.arange(len(sides)), -1))
        nearest = np.full(device.row_count(values[0]), -1, np.int64)
        chosen = ~of_right & (before >= 0)
        nearest[places[chosen]] = places[before[chosen]]
        return nearest

    def _drop_unequal_keys(
        self, device: Device[Frame], values: Sequence[Frame], positions: HostPositions, found: HostPositions
    ) -> HostPositions:
        """The rows found, -1 where their keys are others."""
        width = len(self._nulls_equal)
        if width == 1:
            return found
        some = np.flatnonzero(found >= 0)
        names = ["is_not_distinct_from" if equal else "equal" for equal in self._nulls_equal[:-1]]
        keys = zip(names, self._columns(0), self._columns(width), strict=False)
        equal = conjunction([Call(name, (one, other), pa.bool_()) for name, one, other in keys])
        answer = np.full(len(found), -1, np.int64)
        sides = [CopiedRows(device, frame) for frame in values]
        for portion in portions_within(
            list(zip(sides, (positions[some], found[some]), strict=True)), current_string_limits().piece
        ):
            own = some[portion]
            pairs = device.join_columns(
                [device.take(values[0], positions[own]), device.take(values[1], found[own])]
            )
            kept = own[device.read_positions(device.matching_positions(equal, pairs))]
            answer[kept] = found[kept]
        return answer

    def _columns(self, start: int) -> list[Expression]:
        """References to the values of a side whose columns begin at a place."""
        return [ColumnRef(start + i, "value", value.type) for i, value in enumerate(self._values[0])]

    def _usable(self) -> Expression:
        """That no value is null that equals nothing then."""
        return conjunction(
            [
                Call("is_not_null", (column,), pa.bool_())
                for column, equal in zip(self._columns(0), self._nulls_equal, strict=True)
                if not equal
            ]
        )
