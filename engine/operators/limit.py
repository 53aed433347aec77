"""At most so many rows, after skipping some."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import limit_rows
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile


class Limit(Operator[Frame], Generic[Frame]):
    """The child's rows from `offset` on, `count` of them (None: all); closes the child once it has them."""

    runs_again = True

    def __init__(self, child: Operator[Frame], count: int | None, offset: int) -> None:
        details = {"count": count, "offset": offset}
        super().__init__(child.fields, (child,), OperatorProfile("Limit", details))
        self._count = count
        self._offset = offset

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Slices of the child's frames; none is asked for that is not needed."""
        with closing(self.children[0].frames(context)) as frames:
            yield from limit_rows(context.device, frames, self._count, self._offset)
