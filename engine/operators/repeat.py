"""Rows given several times: what INTERSECT ALL and EXCEPT ALL leave of counted rows."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import spill_frame_bytes
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import Expression
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field

_PORTION: Final = 1 << 17
"""Rows given at once at most; fewer where these would be large for the memory limit."""


class Repeat(Operator[Frame], Generic[Frame]):
    """Each of the child's rows as often as an int64 expression says; nothing is held but a frame."""

    runs_again = True

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
                fit = len(ends) * spill_frame_bytes(context.memory.limit) // max(device.nbytes(frame), 1)
                portion = min(max(fit, 1), _PORTION)
                for start in range(0, total, portion):
                    context.check_cancelled()
                    places = np.arange(start, min(start + portion, total))
                    yield device.take(frame, np.searchsorted(ends, places, side="right"))
