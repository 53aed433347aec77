"""The states of a GROUP BY while its rows come in."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Final, Generic

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import drained, gathered
from bamquery.engine.parallel import ordered_map
from bamquery.errors import MemoryLimitError

_PENDING_GROUPS: Final = 1 << 18
"""Groups that wait unmerged at least: merging costs a pass over all that is held."""
_PENDING_STATES: Final = 256
"""States of few groups that wait at most."""
_SPLIT_GROUPS: Final = 1 << 18
"""Groups from which merging all at once takes too long to be cancelled meanwhile."""
_PLACES: Final = 64


class GroupStates(Generic[Frame]):
    """Merged states, and younger ones that wait until they outweigh them.

    Every group of every chunk may be new: memory stays proportional to the distinct keys, and the work to
    the rows. Many groups are split by key into places that are merged, and finished, each on its own: on
    all threads, and in steps between which a query can stop.
    """

    def __init__(
        self, context: ExecutionContext[Frame], aggregation: Aggregation[Frame, Any], memory: Reservation
    ) -> None:
        self._context = context
        self._aggregation = aggregation
        self._memory = memory
        self._merged: list[GroupState] = []  # one, or one for each place
        self._pending: list[GroupState] = []  # younger, in the rows' order
        self._merged_groups = self._pending_groups = 0
        self._merged_bytes = self._pending_bytes = 0

    def add(self, state: GroupState) -> None:
        """Take the state of the next rows.

        Raises:
            MemoryLimitError: even merged, the states need more than the limit.
            ExecutionError: see `Aggregation.merge`.
        """
        self._pending.append(state)
        self._pending_groups += state.groups
        self._pending_bytes += state.nbytes
        enough = max(_PENDING_GROUPS, self._merged_groups)
        if self._pending_groups >= enough or len(self._pending) >= _PENDING_STATES:
            self._merge()
            return
        try:
            self._reserve()
        except MemoryLimitError:
            self._merge()

    def frames(self) -> Generator[Frame, None, None]:
        """The groups of all rows; nothing is held any more once they are taken.

        Raises:
            MemoryLimitError: merging the last states needs more than the limit.
            ExecutionError: see `Aggregation.final`.
        """
        self._merge()
        with closing(ordered_map(self._context, self._aggregation.final, drained(self._merged))) as frames:
            yield from frames
        self._memory.resize(0)

    def _merge(self) -> None:
        if len(self._merged) > 1:
            self._merge_places()
        elif self._pending:
            states = [*self._merged, *self._pending]
            self._pending.clear()
            self._merged = [self._aggregation.merge(states)]
            if self._merged[0].groups > _SPLIT_GROUPS:
                self._merged = list(self._aggregation.split(self._merged[0], _PLACES))
        self._pending_groups = self._pending_bytes = 0
        self._merged_groups = sum(state.groups for state in self._merged)
        self._merged_bytes = sum(state.nbytes for state in self._merged)
        self._reserve()

    def _merge_places(self) -> None:
        def split(state: GroupState) -> Sequence[GroupState]:
            return self._aggregation.split(state, _PLACES)

        places: list[list[GroupState]] = [[state] for state in drained(self._merged)]
        with closing(ordered_map(self._context, split, drained(self._pending))) as pieces:
            for piece in pieces:
                for place, state in zip(places, piece, strict=True):
                    place.append(state)
        with closing(ordered_map(self._context, self._aggregation.merge, drained(places))) as merged:
            self._merged = list(merged)

    def _reserve(self) -> None:
        """What is held and the copy that merging makes: of everything, or of a place for each thread."""
        held = self._merged_bytes + self._pending_bytes
        places = max(len(self._merged), 1)
        self._memory.resize(held + held * min(self._context.threads + 1, places) // places)


def grouped(
    context: ExecutionContext[Frame],
    rows: Iterable[Frame],
    nothing: Frame,
    aggregation: Aggregation[Frame, Any],
    memory: Reservation,
) -> Generator[Frame, None, None]:
    """The groups of rows, whose columns are those of `nothing`, a frame without rows."""
    states = GroupStates(context, aggregation, memory)
    empty = True
    with (
        closing(gathered(context.device, rows)) as chunks,
        closing(ordered_map(context, aggregation.partial, chunks)) as partials,
    ):
        for state in partials:
            states.add(state)
            empty = False
    if empty:
        states.add(aggregation.partial(nothing))
    with closing(states.frames()) as frames:
        yield from frames
