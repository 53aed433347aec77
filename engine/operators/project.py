"""Columns computed from columns."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import LateCondition, LateFilter
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.base.out_of_memory_split import map_in_parts
from bamquery.engine.profiling.query_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Expression, SortKey
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field
from bamquery.plan.rewriting import map_key, substitute


class Project(Operator[Frame], Generic[Frame]):
    """One column per expression, for each of the child's rows."""

    runs_again = True

    def __init__(
        self, child: Operator[Frame], expressions: Sequence[Expression], fields: tuple[Field, ...]
    ) -> None:
        details = {"columns": [format_expression(expression) for expression in expressions]}
        super().__init__(fields, (child,), OperatorProfile("Project", details))
        self._expressions = tuple(expressions)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame for each of the child's."""
        references = [e.index for e in self._expressions if isinstance(e, ColumnRef)]
        with closing(self.children[0].frames(context)) as frames:
            if len(references) == len(self._expressions):
                for frame in frames:
                    yield context.device.select(frame, references)
                return
            expressions = self._expressions
            computed = map_in_parts(context, lambda f: context.device.evaluate(expressions, f), frames)
            with closing(computed) as answers:
                yield from answers

    def narrow(self, value: Expression, late: LateFilter) -> bool:
        """What the value is made of below."""
        return self.children[0].narrow(substitute(value, self._expressions), late)

    def bound(self, key: SortKey, count: int) -> LateCondition | None:
        """That of what the key is made of below."""
        return self.children[0].bound(map_key(key, lambda e: substitute(e, self._expressions)), count)

    def prefer(self, key: SortKey) -> None:
        """In the order of what the key is made of below."""
        self.children[0].prefer(map_key(key, lambda e: substitute(e, self._expressions)))

    def encode_texts(self) -> None:
        """Columns come as they are, and what is computed from them has their values."""
        self.children[0].encode_texts()
