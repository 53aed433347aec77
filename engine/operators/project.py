"""Columns computed from columns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition, DynamicFilter
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.base.out_of_memory_split import map_split_on_out_of_memory
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, SortKey, referenced_columns
from bamquery.plan.format import expression_text
from bamquery.plan.nodes import Field
from bamquery.plan.rewriting import map_arguments, map_key, renumber, substitute

if TYPE_CHECKING:
    from bamquery.engine.compiling_device import CompilingDevice


class Project(Operator[Frame], Generic[Frame]):
    """One column per expression, for each of the child's rows."""

    runs_again = True

    def __init__(
        self, child: Operator[Frame], expressions: Sequence[Expression], fields: tuple[Field, ...]
    ) -> None:
        details = {"columns": [expression_text(expression) for expression in expressions]}
        super().__init__(fields, (child,), OperatorProfile("Project", details))
        self._expressions = tuple(expressions)
        self._is_computed_above = False

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame for each of the child's."""
        references = [e.index for e in self._expressions if isinstance(e, ColumnRef)]
        with closing(self.children[0].frames(context)) as frames:
            if len(references) == len(self._expressions):
                for frame in frames:
                    yield context.device.select(frame, references)
                return
            expressions = self._expressions
            computed = map_split_on_out_of_memory(
                context, lambda f: context.device.evaluate(expressions, f), frames
            )
            with closing(computed) as answers:
                yield from answers

    def nullable_fields(self) -> Sequence[bool | None]:
        """Those of columns that are the child's."""
        below = self.children[0].nullable_fields()
        return [below[e.index] if isinstance(e, ColumnRef) else None for e in self._expressions]

    def start_compiling(self, device: CompilingDevice) -> None:
        """Its expressions, unless who wants them computes them."""
        if not self._is_computed_above:
            device.start_compiling(self._expressions, self.children[0].nullable_fields())

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """What the value is made of below."""
        return self.children[0].push_dynamic_filter(substitute(value, self._expressions), dynamic_filter)

    def join_filters(self) -> Sequence[tuple[Expression, DynamicFilter]]:
        """Those of columns that are the child's."""
        places = {e.index: i for i, e in enumerate(self._expressions) if isinstance(e, ColumnRef)}
        return [
            (renumber(value, places), known)
            for value, known in self.children[0].join_filters()
            if referenced_columns(value) <= places.keys()
        ]

    def build_paths(self) -> Sequence[tuple[Operator[Frame], ...]]:
        """The child's."""
        return [(self, *path) for path in self.children[0].build_paths()]

    def top_n_bound(self, key: SortKey, count: int) -> DynamicCondition | None:
        """That of what the key is made of below."""
        return self.children[0].top_n_bound(map_key(key, lambda e: substitute(e, self._expressions)), count)

    def prefer_order(self, key: SortKey) -> None:
        """In the order of what the key is made of below."""
        self.children[0].prefer_order(map_key(key, lambda e: substitute(e, self._expressions)))

    def compute_within(
        self,
        keys: Sequence[Expression],
        calls: Sequence[AggregateCall],
        in_one_pass: Callable[[Sequence[AggregateCall]], bool],
    ) -> tuple[Operator[Frame], tuple[Expression, ...], tuple[AggregateCall, ...]] | None:
        """The child, and keys and calls over its columns, where a program computes all in one pass.

        None where it does not, as `in_one_pass` says of calls: what is computed by itself is computed here,
        once.
        """
        from bamquery.engine.pipeline.lowering import is_covered  # noqa: PLC0415 (where rows are grouped)

        self._is_computed_above = False
        plain = [isinstance(expression, ColumnRef) for expression in self._expressions]
        if not all(plain[index] for index in referenced_columns(*keys)):
            return None
        if not all(is_plain or is_covered(e) for e, is_plain in zip(self._expressions, plain, strict=True)):
            return None

        def in_child(expression: Expression) -> Expression:
            return substitute(expression, self._expressions)

        over_child = tuple(map_arguments(call, in_child) for call in calls)
        if not in_one_pass(over_child):
            return None
        self._is_computed_above = True
        self.profile.details["computed"] = "by the aggregate"
        return self.children[0], tuple(map(in_child, keys)), over_child

    def keep_encoded(self) -> None:
        """Columns come as they are, and what is computed from them has their values."""
        self.children[0].keep_encoded()

    def take_all_rows(self) -> None:
        """All of the child's."""
        self.children[0].take_all_rows()
