"""WITH RECURSIVE: a step that is repeated over what it gave before, until it gives no more rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Final, Generic, TypeAlias

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Announcement
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.recursion.distinct_set import DistinctSet
from bamquery.engine.operators.recursion.recursive_table import RecursiveTable
from bamquery.engine.operators.recursion.small_recursion import SmallRecursion
from bamquery.engine.operators.scan.recursive_table_scan import RecursiveTableScan
from bamquery.engine.operators.single_row import SingleRow
from bamquery.engine.operators.values import Values
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Field

_FEW_ROWS: Final = 10_000
_SMALL: Final = (RecursiveTableScan, SingleRow, Values)


SmallForms: TypeAlias = Callable[[ExecutionContext[Frame], int, str | None], SmallRecursion[Frame] | None]
"""What goes on with so many rows after such a form has given up; a form of None: from the first part on."""


class Recursion(Operator[Frame], Generic[Frame]):
    """The first part's rows, then those of each step.

    The rows of the last step and of the one that runs are held, with `keys` all rows, since none is given
    twice; what does not fit `memory_limit` is in files.

    Args:
        first: the part that does not name the query.
        make_step: the other one's operator, once for each step.
        rows: where the step finds the rows of the last one.
        keys: what makes rows equal; empty where rows may come again (UNION ALL).
        fields: of both parts.
        small: what computes steps without operators; None: nothing does.
    """

    repeats = True

    def __init__(
        self,
        first: Operator[Frame],
        make_step: Callable[[], Operator[Frame]],
        rows: RecursiveTableSource[Frame],
        keys: Sequence[Expression],
        fields: tuple[Field, ...],
        *,
        small: SmallForms[Frame] | None = None,
    ) -> None:
        step = make_step()
        details = {"table": rows.name, "rows": "once each" if keys else "all", "steps": 0}
        super().__init__(fields, (first, step), OperatorProfile("Recursion", details))
        self.reservations = 2 * RecursiveTable.reservations + (DistinctSet.reservations if keys else 0)
        self._make_step = make_step
        self._rows = rows
        self._keys = keys
        self._small = small

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Frames as they come, as long as all fit: who wants few rows need not wait for the last step."""
        first, shown = self.children
        self._rows.count = 0
        with ExitStack() as stack:
            last, current = (
                stack.enter_context(RecursiveTable(context, self.fields, self.profile)) for _ in range(2)
            )
            seen: DistinctSet[Frame] | None = None
            if self._keys:
                seen = stack.enter_context(DistinctSet(context, self._keys, self.fields, self.profile))
            announced = stack.enter_context(context.memory.repeat_announced(shown.all_reservations()))
            stack.callback(_let_go, shown)
            part, reserves, again = first, None, False
            while True:
                with closing(self._nonempty_frames(context, part, reserves)) as given:
                    for frame in given if seen is None else seen.distinct_frames(given):
                        current.add(frame)
                        yield frame
                if part is shown and not again:
                    again = part.can_run_again()  # not before it has run: what it keeps is known by then
                elif part not in self.children:
                    _let_go(part)
                    _add(shown.profile, part.profile)
                last.clear()
                if part is first:
                    with closing(self._small_steps(context, current, seen, announced)) as frames:
                        yield from frames
                if not current.rows:
                    break
                last, current = current, last
                self._rows.count, self._rows.frames = last.rows, last.frames
                if part is first:
                    part = shown
                elif not again:
                    part = self._make_step()
                reserves = announced
                self.profile.details["steps"] += 1

    def _small_steps(
        self,
        context: ExecutionContext[Frame],
        current: RecursiveTable[Frame],
        distinct: DistinctSet[Frame] | None,
        announced: Announcement,
    ) -> Generator[Frame, None, None]:
        """Steps while they are small; leaves the last one's rows in `current`, and tells `distinct` of all.

        On the host only: a query that was sent to a GPU is computed there.
        """
        if self._small is None or not context.device.capabilities.on_host or not current.rows:
            return
        known: list[Frame] | None = None
        small = self._small(context, current.rows, None)
        while small is not None:
            with small:
                with closing(current.frames()) as frames, context.memory.attribute_to(announced):
                    begun = small.begin(frames, known)
                if begun:
                    yield from self._frames_of(small)
                    current.clear()
                    if not small.last_rows:
                        return
                    current.add(small.last_frame())
                following = self._small(context, current.rows, small.form)
                if begun and distinct is not None:
                    if following is None:
                        known = None
                        _tell(distinct, small.take_distinct_rows())
                    else:
                        known = list(small.take_distinct_rows())
                small = following
        if distinct is not None and known is not None:
            _tell(distinct, known)

    def _frames_of(self, small: SmallRecursion[Frame]) -> Generator[Frame, None, None]:
        """Its steps' rows; the profile counts them."""
        steps, rows = self.profile.details["steps"], self.children[1].profile.rows
        with closing(small.frames()) as frames:
            while True:
                frame = next(frames, None)
                if small.steps:
                    self.profile.details.update({"steps": steps + small.steps, small.form: small.steps})
                self.children[1].profile.rows = rows + small.rows
                if frame is None:
                    return
                yield frame

    def _nonempty_frames(
        self, context: ExecutionContext[Frame], child: Operator[Frame], reserves: Announcement | None
    ) -> Generator[Frame, None, None]:
        """What the first part or a step gives, frames without rows left out."""
        little = self._is_small(child)
        with closing(child.frames(context)) as frames:
            while (frame := _drain_next_step(frames, context, reserves, alone=little)) is not None:
                if context.device.row_count(frame):
                    yield frame

    def _is_small(self, child: Operator[Frame]) -> bool:
        """Whether a step reads nothing but a few rows: threads would take longer to begin than to compute."""
        return self._rows.count < _FEW_ROWS and all(isinstance(leaf, _SMALL) for leaf in _leaves(child))


def _leaves(operator: Operator[Frame]) -> Iterator[Operator[Frame]]:
    below = operator.read_again()
    if not below:
        yield operator
    for child in below:
        yield from _leaves(child)


def _tell(distinct: DistinctSet[Frame], known: Iterable[Frame]) -> None:
    """Put in rows that have been given already."""
    for _ in distinct.distinct_frames(known):
        pass


def _let_go(step: Operator[Frame]) -> None:
    for part in step.walk():
        part.let_go()


def _drain_next_step(
    frames: Iterator[Frame], context: ExecutionContext[Frame], reserves: Announcement | None, *, alone: bool
) -> Frame | None:
    before, context.alone = context.alone, alone
    try:
        with context.memory.attribute_to(reserves):
            return next(frames, None)
    finally:
        context.alone = before


def _add(total: OperatorProfile, step: OperatorProfile) -> None:
    """Another step's rows and time to those of the one that is shown."""
    total.rows += step.rows
    total.seconds += step.seconds
    for mine, other in zip(total.children, step.children, strict=True):
        _add(mine, other)
