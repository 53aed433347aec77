"""Rows that the statement itself contains: VALUES."""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import Field


class Values(Operator[Frame], Generic[Frame]):
    """The rows of a batch."""

    runs_again = True

    def __init__(self, batch: pa.RecordBatch, fields: tuple[Field, ...]) -> None:
        super().__init__(fields, (), OperatorProfile("Values"))
        self._batch = batch

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame."""
        yield context.device.from_arrow(self._batch)
