"""Rows given several times: what INTERSECT ALL and EXCEPT ALL leave of counted rows."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame
from bamquery.engine.operators.operator import Operator
from bamquery.engine.profile import OperatorProfile
from bamquery.plan.expressions import Expression
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field

_PORTION: Final = 1 << 17


class Repeat(Operator[Frame], Generic[Frame]):
    """Each of the child's rows as often as an int64 expression says."""

    def __init__(self, child: Operator[Frame], count: Expression) -> None:
        details = {"count": format_expression(count)}
        super().__init__(child.fields, (child,), OperatorProfile("Repeat", details))
        self._count = count

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, repetitions next to each other."""
        device = context.device
        counted = [Field("count", pa.int64())]
        with closing(self.children[0].frames(context)) as frames:
            for frame in frames:
                column = device.to_arrow(device.evaluate([self._count], frame), counted).column(0)
                counts = np.maximum(np.asarray(column.fill_null(0)), 0)
                ends = np.cumsum(counts)
                total = int(ends[-1]) if len(ends) else 0
                for start in range(0, total, _PORTION):
                    context.check_cancelled()
                    places = np.arange(start, min(start + _PORTION, total))
                    yield device.take(frame, np.searchsorted(ends, places, side="right"))
