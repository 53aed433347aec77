"""A join of every row with one build row, such as a scalar subquery's answer, is a filter, or takes all."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import Any, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.ordered_map import is_small_frame, ordered_map
from bamquery.engine.operators.base.frame_sizing import coalesce_frames
from bamquery.engine.operators.join.build_side import BuildSide
from bamquery.engine.operators.join.strategy import JoinTask, ProbeRows
from bamquery.plan.expressions import ColumnRef, Literal
from bamquery.plan.rewriting import substitute


class OneBuildRow(Generic[Frame]):
    """The build row's values as constants: no pairs are made, and the condition is a program's."""

    def __init__(self, task: JoinTask[Frame], side: BuildSide[Frame]) -> None:
        """See `of_join`."""
        self._task = task
        batch = task.context.device.to_arrow(side.frame, task.build_fields)
        self._values = [Literal(column[0]) for column in batch.columns]
        probe = [ColumnRef(i, field.name, field.type) for i, field in enumerate(task.probe_fields)]
        residual = task.condition.residual
        self._condition = None if residual is None else substitute(residual, [*probe, *self._values])

    @classmethod
    def of_join(cls, task: JoinTask[Frame], side: BuildSide[Frame]) -> OneBuildRow[Frame] | None:
        """None where the join is not such a one, or the row has a value that takes more than a few bytes."""
        pairs_with_all = task.condition.residual is None
        is_kept = task.kind == "inner" or (task.kind == "single" and pairs_with_all)
        if not is_kept or task.condition.build_keys or side.rows != 1:
            return None
        if not all(_is_short(field.type) for field in task.build_fields):
            return None
        return cls(task, side)

    def rows(self, probe: ProbeRows[Frame]) -> Generator[Frame, None, None]:
        """The probe rows that fulfil the condition, with the build row's values, in order."""
        context = self._task.context
        is_small = partial(is_small_frame, context.device)
        with (
            closing(probe()) as frames,
            closing(coalesce_frames(context, frames)) as chunks,
            closing(ordered_map(context, self._keep, chunks, is_small=is_small)) as kept,
        ):
            yield from filter(context.device.row_count, kept)

    def _keep(self, frame: Frame) -> Frame:
        device = self._task.context.device
        kept = frame if self._condition is None else device.filter(frame, self._condition)
        if not device.row_count(kept):
            return kept
        return device.join_columns([kept, device.evaluate(self._values, kept)])


def _is_short(kind: Any) -> bool:
    """Whether values have some bits each: a string would be there once for each row."""
    is_number = pa.types.is_primitive(kind) and not pa.types.is_interval(kind)
    return bool(is_number or pa.types.is_decimal128(kind))
