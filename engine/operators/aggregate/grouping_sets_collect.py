"""Grouping sets: the groups in the plan's columns, and those that are there without any row."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field


class CollectGroupingSets(Operator[Frame], Generic[Frame]):
    """Keys, aggregates and the set's number, of groups that come with the number before the aggregates.

    Args:
        child: the groups.
        rows: columns of the rows that were grouped.
        aggregates: the calls over those.
        sets: which keys each set has; a set without keys has a group even of no rows.
        fields: the plan's.
    """

    def __init__(
        self,
        child: Operator[Frame],
        rows: Sequence[Field],
        aggregates: Sequence[AggregateCall],
        sets: Sequence[Sequence[int]],
        fields: tuple[Field, ...],
    ) -> None:
        super().__init__(fields, (child,), OperatorProfile("Collect sets", {"sets": len(sets)}))
        self._rows = tuple(rows)
        self._aggregates = tuple(replace(call, distinct=False) for call in aggregates)
        self._empty = [number for number, members in enumerate(sets) if not members]

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The groups as they come; where none come, those of sets without keys."""
        device = context.device
        keys = len(self.fields) - 1 - len(self._aggregates)
        order = [*range(keys), *range(keys + 1, len(self.fields)), keys]
        rows = 0
        with closing(self.children[0].frames(context)) as frames:
            for frame in frames:
                rows += device.row_count(frame)
                yield device.select(frame, order)
        if rows:
            return
        aggregation = device.aggregation([], self._aggregates)
        nothing = aggregation.final(aggregation.partial(device.empty(self._rows)))
        nulls: list[Expression] = [Literal(pa.scalar(None, field.type)) for field in self.fields[:keys]]
        values = [ColumnRef(i, "", call.type) for i, call in enumerate(self._aggregates)]
        for number in self._empty:
            own = Literal(pa.scalar(number, self.fields[-1].type))
            yield device.evaluate([*nulls, *values, own], nothing)
