"""The base of all physical operators: an iterator of frames with fields, children and a profile."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition, DynamicFilter
from bamquery.engine.profiling.kernel_use import begin_work
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Expression, SortKey
from bamquery.plan.nodes import Field

if TYPE_CHECKING:
    from bamquery.engine.compiling_device import CompilingDevice


class Operator(ABC, Generic[Frame]):
    """One step of a physical plan. It runs once, but for `can_run_again`.

    Attributes:
        fields: columns of its frames, in order.
        children: where its rows come from.
        reservations: parts of `memory_limit` that it asks for.
        repeats: whether what is below it runs any number of times.
        runs_again: whether it keeps nothing of a run: `frames` may be called once more after it.
        profile: filled while it runs; `seconds` is the time spent here, children left out, waiting for
            its own worker threads included.
    """

    reservations = 0
    repeats = False
    runs_again = False

    def __init__(
        self, fields: tuple[Field, ...], children: tuple[Operator[Frame], ...], profile: OperatorProfile
    ) -> None:
        self.fields = fields
        self.children = children
        self.profile = profile
        profile.children = tuple(child.profile for child in children)
        self._total_seconds = 0.0  # children's time included

    def all_reservations(self) -> int:
        """Its own and those of all operators below."""
        return sum(operator.reservations for operator in self.walk())

    def walk(self) -> Iterator[Operator[Frame]]:
        """This one and all below, parents first."""
        waiting: list[Operator[Frame]] = [self]
        while waiting:
            found = waiting.pop()
            yield found
            waiting.extend(reversed(found.children))

    def can_run_again(self) -> bool:
        """Whether it and all that another run of it reads can, so that a step need not be made anew."""
        waiting: list[Operator[Frame]] = [self]
        while waiting:
            found = waiting.pop()
            if not found.runs_again:
                return False
            waiting.extend(found.read_again())
        return True

    def read_again(self) -> Sequence[Operator[Frame]]:
        """The children that another run reads: not those of whose rows it has kept what it needs."""
        return self.children

    def let_go(self) -> None:
        """There will be no other run: give back what was kept for one."""
        return

    def depth(self) -> int:
        """How many operators there are, this one included, on the longest way down."""
        deepest, level = 0, [self]
        while level:
            deepest += 1
            level = list({id(child): child for one in level for child in one.children}.values())
        return deepest

    @abstractmethod
    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The frames, as a generator that closes its children's iterators when it is closed.

        An operator calls `frames` of its children, not this.
        """

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """Take a condition on `value`, over this operator's columns, down to scans that can read less by it.

        Rows for which it is not true are not wanted: they may come all the same. Called before it runs.

        Returns:
            Whether a scan has taken it. Operators that need all rows of theirs say no.
        """
        return False

    def join_filters(self) -> Sequence[tuple[Expression, DynamicFilter]]:
        """What joins below tell scans of its columns, before rows are read: all its rows fulfil it."""
        return ()

    def build_paths(self) -> Sequence[tuple[Operator[Frame], ...]]:
        """To each join that can read its build side before it is asked for rows: from this operator on."""
        return ()

    def top_n_bound(self, key: SortKey, count: int) -> DynamicCondition | None:
        """What the first `count` rows in the order of `key` fulfil, if that is known before any is read.

        Rows for which it is not true come after those. Called before it runs.
        """
        return None

    def known_aggregates(self, calls: Sequence[AggregateCall]) -> pa.RecordBatch | None:
        """Aggregates of all rows, one row, if they are known before any is read. Called when it would run.

        Raises:
            BamQueryError: what should know them is damaged or cannot be read.
        """
        return None

    def prefer_order(self, key: SortKey) -> None:
        """Give rows that are early in the order of `key` first, where that is easily done.

        Called before it runs, by who does not mind in which order rows come.
        """
        return

    def nullable_fields(self) -> Sequence[bool | None]:
        """Of each column whether some rows may be null; None where that is not known before it runs."""
        return (None,) * len(self.fields)

    def start_compiling(self, device: CompilingDevice) -> None:
        """Let the device begin with what it needs for this operator alone and takes long to make."""
        return

    def keep_encoded(self) -> None:
        """Whoever takes the rows groups them: columns may come as they are stored, if the device takes such.

        Strings may have dictionaries, as `Device.dictionary_encode` makes them. Called before it runs.
        Operators that compare or keep rows need not do so.
        """
        return

    def take_all_rows(self) -> None:
        """Whoever takes the rows takes all of them, and wants none sooner. Called before it runs."""
        return

    def frames(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The frames, measured. Closing the iterator stops the work; a frame may have no rows.

        Raises:
            CancelledError: between two frames, once the query is cancelled.
            ExecutionError: a value cannot be computed.
            MemoryLimitError: an operator would hold more than `memory_limit`.
            StorageError: a file cannot be read.
        """
        produced = self.produce(context)
        try:
            while True:
                context.check_cancelled()
                frame = self._next_measured(produced)
                if frame is None:
                    return
                self.profile.rows += context.device.row_count(frame)
                yield frame
        finally:
            produced.close()

    def count_seconds_below(self, seconds: float) -> None:
        """Time was spent in an operator below while this one was not asked for rows."""
        self._total_seconds += seconds

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Time that is spent here meanwhile is this operator's, but for that of its children."""
        started, below = time.perf_counter(), self._seconds_of_children()
        try:
            yield
        finally:
            self._count_seconds(time.perf_counter() - started, below)

    def _next_measured(self, produced: Iterator[Frame]) -> Frame | None:
        # As `measured`, which would make a generator for each frame of each operator.
        before, below = begin_work(self.profile), self._seconds_of_children()
        started = time.perf_counter()
        try:
            return next(produced, None)
        finally:
            self._count_seconds(time.perf_counter() - started, below)
            begin_work(before)

    def _seconds_of_children(self) -> float:
        seconds = 0.0
        for child in self.children:
            seconds += child._total_seconds
        return seconds

    def _count_seconds(self, elapsed: float, below: float) -> None:
        """So many have passed here, and there were `below` of the children's before."""
        self._total_seconds += elapsed
        self.profile.seconds += elapsed - (self._seconds_of_children() - below)
