"""The rows that a recursive query's last step gave, for the step that follows."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Scan


class RecursiveTableScan(Operator[Frame], Generic[Frame]):
    """Those rows for which all predicates are true, with the columns that are wanted."""

    runs_again = True

    def __init__(self, scan: Scan, rows: RecursiveTableSource[Frame]) -> None:
        details = {"table": rows.name}
        if scan.predicates:
            details["where"] = " AND ".join(map(format_expression, scan.predicates))
        super().__init__(scan.fields, (), OperatorProfile("WorkingScan", details))
        self._rows = rows
        self._columns = scan.columns
        self._predicates = scan.predicates

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Frame by frame."""
        with closing(self._rows.frames()) as frames:
            for frame in frames:
                kept = frame
                for predicate in self._predicates:
                    kept = context.device.filter(kept, predicate)
                yield context.device.select(kept, self._columns)
