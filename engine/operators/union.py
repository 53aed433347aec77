"""UNION ALL, and tables in several pieces: one child's rows after the other's."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Field


class Union(Operator[Frame], Generic[Frame]):
    """All children's rows, child by child; their columns have the same types. Profiles call it `name`."""

    runs_again = True

    def __init__(
        self, children: Sequence[Operator[Frame]], fields: tuple[Field, ...], name: str = "Union"
    ) -> None:
        super().__init__(fields, tuple(children), OperatorProfile(name))

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The children's frames."""
        for child in self.children:
            with closing(child.frames(context)) as frames:
                yield from frames

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """Every child's columns are its own; each may take it."""
        taken = [child.push_dynamic_filter(value, dynamic_filter) for child in self.children]
        return any(taken)
