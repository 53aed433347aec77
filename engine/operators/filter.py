"""Rows for which a predicate is true."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import is_small_frame, ordered_map
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import Expression, SortKey
from bamquery.plan.format import expression_text

if TYPE_CHECKING:
    from bamquery.engine.compiling_device import CompilingDevice


class Filter(Operator[Frame], Generic[Frame]):
    """Drops rows whose predicate is false or null. Frames keep their order and may become empty."""

    runs_again = True

    def __init__(self, child: Operator[Frame], predicate: Expression) -> None:
        super().__init__(
            child.fields, (child,), OperatorProfile("Filter", {"filter": expression_text(predicate)})
        )
        self._predicate = predicate

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame for each of the child's."""
        with (
            closing(self.children[0].frames(context)) as frames,
            closing(
                ordered_map(
                    context,
                    lambda f: context.device.filter(f, self._predicate),
                    frames,
                    is_small=partial(is_small_frame, context.device),
                )
            ) as kept,
        ):
            yield from kept

    def nullable_fields(self) -> Sequence[bool | None]:
        """The child's."""
        return self.children[0].nullable_fields()

    def start_compiling(self, device: CompilingDevice) -> None:
        """Its predicate."""
        device.start_compiling_filter(self._predicate, self.children[0].nullable_fields())

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """The child's columns are its own."""
        return self.children[0].push_dynamic_filter(value, dynamic_filter)

    def join_filters(self) -> Sequence[tuple[Expression, DynamicFilter]]:
        """The child's columns are its own."""
        return self.children[0].join_filters()

    def build_paths(self) -> Sequence[tuple[Operator[Frame], ...]]:
        """The child's."""
        return [(self, *path) for path in self.children[0].build_paths()]

    def prefer_order(self, key: SortKey) -> None:
        """In the child's order."""
        self.children[0].prefer_order(key)

    def take_all_rows(self) -> None:
        """All of the child's."""
        self.children[0].take_all_rows()
