"""The single row that a SELECT without FROM reads."""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile


class SingleRow(Operator[Frame], Generic[Frame]):
    """One row without columns."""

    runs_again = True

    def __init__(self) -> None:
        super().__init__((), (), OperatorProfile("Single row"))

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame."""
        yield context.device.single_row()
