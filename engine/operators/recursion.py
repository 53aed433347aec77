"""WITH RECURSIVE: a step that is repeated over what it gave before, until it gives no more rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Final, Generic

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame
from bamquery.engine.operators.operator import Operator
from bamquery.engine.operators.seen_rows import SeenRows
from bamquery.engine.operators.single_row import SingleRow
from bamquery.engine.operators.values import Values
from bamquery.engine.operators.working_scan import WorkingScan
from bamquery.engine.profile import OperatorProfile
from bamquery.engine.sources import WorkingRows
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Field

_WHAT: Final = "WITH RECURSIVE"
_FEW_ROWS: Final = 10_000
_SMALL: Final = (WorkingScan, SingleRow, Values)


class Recursion(Operator[Frame], Generic[Frame]):
    """The first part's rows, then those of each step.

    Held in memory are the rows of the last step and of the one that runs; with `keys` all rows, since none is
    given twice.

    Args:
        first: the part that does not name the query.
        make_step: the other one's operator, once for each step.
        rows: where the step finds the rows of the last one.
        keys: what makes rows equal; empty where rows may come again (UNION ALL).
        fields: of both parts.
    """

    def __init__(
        self,
        first: Operator[Frame],
        make_step: Callable[[], Operator[Frame]],
        rows: WorkingRows[Frame],
        keys: Sequence[Expression],
        fields: tuple[Field, ...],
    ) -> None:
        step = make_step()
        details = {"table": rows.name, "rows": "once each" if keys else "all", "steps": 0}
        super().__init__(fields, (first, step), OperatorProfile("Recursion", details))
        self.reservations = 3 if keys else 2
        self._make_step = make_step
        self._rows = rows
        self._keys = keys

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Frames as they come: who wants few rows need not wait for the last step."""
        first, shown = self.children
        steps = 0
        with (
            SeenRows(context, self._keys, self.fields) as seen,
            context.memory.reservation(_WHAT) as last,
            context.memory.reservation(_WHAT) as current,
        ):
            self._rows.frames = ()
            part = first
            while True:
                given: list[Frame] = []
                size = 0
                little = self._is_little(context, part)
                with closing(part.frames(context)) as frames:
                    while (frame := _next(frames, context, alone=little)) is not None:
                        new = seen.new(frame) if self._keys else frame
                        if not context.device.row_count(new):
                            continue
                        given.append(new)
                        size += context.device.nbytes(new)
                        current.resize(size)
                        yield new
                if part not in self.children:
                    _add(shown.profile, part.profile)
                if not given:
                    break
                self._rows.frames = (context.device.concatenate(given),) if len(given) > 1 else tuple(given)
                current.resize(0)
                last.resize(size)
                part = self._make_step() if steps else shown
                steps += 1
                self.profile.details["steps"] = steps
            self._rows.frames = ()

    def _is_little(self, context: ExecutionContext[Frame], part: Operator[Frame]) -> bool:
        """Whether a step reads nothing but a few rows: threads would take longer to begin than to compute."""
        rows = sum(map(context.device.row_count, self._rows.frames))
        return rows < _FEW_ROWS and all(isinstance(leaf, _SMALL) for leaf in _leaves(part))


def _leaves(operator: Operator[Frame]) -> Iterator[Operator[Frame]]:
    if not operator.children:
        yield operator
    for child in operator.children:
        yield from _leaves(child)


def _next(frames: Iterator[Frame], context: ExecutionContext[Frame], *, alone: bool) -> Frame | None:
    before, context.alone = context.alone, alone
    try:
        return next(frames, None)
    finally:
        context.alone = before


def _add(total: OperatorProfile, step: OperatorProfile) -> None:
    """Another step's rows and time to those of the one that is shown."""
    total.rows += step.rows
    total.seconds += step.seconds
    for mine, other in zip(total.children, step.children, strict=True):
        _add(mine, other)
