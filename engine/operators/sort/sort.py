"""ORDER BY: all rows in order."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import coalesce_frames
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.sort.external_sort import sort_rows
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import SortKey


class Sort(Operator[Frame], Generic[Frame]):
    """The child's rows in stable order; what does not fit `memory_limit` goes to files."""

    reservations = 1
    runs_again = True

    def __init__(self, child: Operator[Frame], keys: Sequence[SortKey]) -> None:
        super().__init__(child.fields, (child,), OperatorProfile("Sort", {"keys": len(keys)}))
        self._keys = tuple(keys)
        child.take_all_rows()

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """The child's columns are its own."""
        return self.children[0].push_dynamic_filter(value, dynamic_filter)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """All rows, once they have come."""
        with (
            context.memory.reservation("ORDER BY") as memory,
            closing(self.children[0].frames(context)) as frames,
            closing(coalesce_frames(context, frames)) as chunks,
            closing(
                sort_rows(context, chunks, self.fields, self._keys, memory=memory, profile=self.profile)
            ) as ordered,
        ):
            yield from ordered
