"""Columns computed from columns."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame
from bamquery.engine.late_filter import LateCondition, LateFilter
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import ColumnRef, Expression, SortKey
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field
from bamquery.plan.rewriting import map_key, substitute


@dataclass(frozen=True, slots=True)
class _TooLarge(Generic[Frame]):
    frame: Frame


class Project(Operator[Frame], Generic[Frame]):
    """One column per expression, for each of the child's rows."""

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
            with closing(ordered_map(context, partial(self._computed, context), frames)) as computed:
                for answer in computed:
                    if isinstance(answer, _TooLarge):
                        yield from self._in_halves(context, answer.frame)
                    else:
                        yield answer

    def _computed(self, context: ExecutionContext[Frame], frame: Frame) -> Frame | _TooLarge[Frame]:
        """The answer; or the frame, where its answer is too large to wait for its turn."""
        device = context.device
        try:
            return device.evaluate(self._expressions, frame)
        except MemoryLimitError:
            if device.row_count(frame) <= 1:
                raise
            return _TooLarge(frame)

    def _in_halves(self, context: ExecutionContext[Frame], frame: Frame) -> Generator[Frame, None, None]:
        """The answer by fewer and fewer rows, each frame only when the one before is done with."""
        device = context.device
        half = device.row_count(frame) // 2
        for start, count in ((0, half), (half, device.row_count(frame) - half)):
            context.check_cancelled()
            answer = self._computed(context, device.slice(frame, start, count))
            if isinstance(answer, _TooLarge):
                yield from self._in_halves(context, answer.frame)
            else:
                yield answer

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
