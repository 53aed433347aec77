"""The states of a GROUP BY while its rows come in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final, Generic, Protocol, runtime_checkable

from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation, release_unused_memory
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.aggregate.state_partitions import MOST_LEVELS, PLACE_GROUPS, StatePartitions
from bamquery.engine.operators.base.frame_sizing import drain_list, gather_frames
from bamquery.engine.operators.base.out_of_memory_split import map_chunks_split_on_out_of_memory
from bamquery.engine.profiling.operator_profile import OperatorProfile

_PENDING_GROUPS: Final = 1 << 18
"""Groups that wait unmerged at least: merging costs a pass over all that is held."""
_MANY_THREADS: Final = 8
_PATIENCE: Final = 16
"""Times as many where threads are many: merging is hundreds of steps of Python, too, of which no two go on
at once."""
_PENDING_STATES: Final = 256
"""States of few groups that wait at most."""
_SPILLED_GROUPS: Final = 1 << 20
"""Groups that go to files together where they are not merged before: states for all threads to split."""
_SPLIT_GROUPS: Final = 1 << 18
"""Groups from which merging all at once takes too long to be cancelled meanwhile."""
_SPLIT_BYTES: Final = 64 << 20
"""Bytes from which merging all at once takes too much memory beside them: few groups with long strings."""
_SPLIT_PART: Final = 16
"""Of `memory_limit`, where that is less."""
_PLACES: Final = 64
"""Where groups are apart; fewer on a device that has work for all its parts with a place alone."""
_LEAST_PLACES: Final = 4
_FEWEST_PLACES: Final = 8
"""Of several: fewer take more memory, while one of them is merged, than all groups at once."""
_MORE_PLACES: Final = 4
"""Times as many where groups are too many for those."""
_PLACE_GROUPS: Final = 16
_PLACE_BYTES: Final = 1 << 20
"""Groups, or bytes, that a place has at least: merging one of less costs no less."""
_SPREAD_GROUPS: Final = 1 << 17
_SPREAD_BYTES: Final = 4 << 20
"""The same where threads are many, for each of which there is a place all the same: half as many groups."""
_SPREAD_PLACES: Final = 16
"""Places of half as many."""
_SPREAD_STATE: Final = 1 << 13
"""Groups of each state from which on many threads put the first ones together, and not one of them."""
_MERGING: Final = 4
"""Times that groups are in memory while they are merged: joined, in a table, and as an answer."""
_UNUSED: Final = 3
"""Part of what is held that allocators keep of freed memory between large arrays."""
_MEMORY_LEVEL: Final = 0
"""Of the hashes that groups in memory are split by: those of files have higher ones."""
_FEW_REPEATED: Final = 0.75
"""Groups left of those that were merged, from which on merging does not pay before files are full."""


@runtime_checkable
class SplicingAggregation(Protocol):
    """A `bamquery.engine.device.Aggregation` that can see that states have hardly any key in common."""

    def splice(
        self,
        states: Sequence[Any],
        spread: Callable[[Callable[[Any], Any], Iterable[Any]], Generator[Any, None, None]],
    ) -> list[Any] | None:
        """States of the same groups, none of which has a key of another one; None if merging is worth it.

        `spread` calls a function with each of some items, on threads, and gives the answers in order.
        """
        ...


class GroupStates(Generic[Frame]):
    """Merged states, and younger ones that wait until they outweigh them.

    Every group of every chunk may be new: memory stays proportional to the distinct keys, and the work to
    the rows. Many groups are split by key into places that are merged, and finished, each on its own: on
    all threads, and in steps between which a query can stop. What does not fit `memory_limit` goes to
    files, by key, and each file is finished on its own.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        aggregation: Aggregation[Frame, Any],
        memory: Reservation,
        profile: OperatorProfile,
        level: int = 0,
    ) -> None:
        """`level`: how often what comes in was split into files before."""
        self._context = context
        self._aggregation = aggregation
        self._memory = memory
        self._profile = profile
        self._level = level
        self._repeated = level > 0  # files put states together as they are
        self._merged: list[GroupState] = []  # one, or one for each place, or such as are apart
        self._is_spliced = False
        self._pending: list[GroupState] = []  # younger, in the rows' order
        self._merged_groups = self._pending_groups = 0
        self._merged_bytes = self._pending_bytes = 0
        self._taken_groups = 0  # since states went to files last
        self._partitions: StatePartitions[Frame] | None = None
        self._merges = True
        self._split_bytes = min(_SPLIT_BYTES * context.device.task_size, context.memory.limit // _SPLIT_PART)

    def add(self, state: GroupState) -> None:
        """Take the state of the next rows.

        Raises:
            MemoryLimitError: even merged, the states need more than the limit, and no file can take them.
            ExecutionError: see `Aggregation.merge`.
            StorageError: the folder has no room for them.
        """
        self._pending.append(state)
        self._pending_groups += state.groups
        self._pending_bytes += state.nbytes
        self._taken_groups += state.groups
        self._make_room()

    def frames(self) -> Generator[Frame, None, None]:
        """The groups of all rows; nothing is held any more once they are taken.

        Raises:
            MemoryLimitError: merging the last states needs more than the limit.
            ExecutionError: see `Aggregation.final`.
            StorageError: files cannot be written or read back.
        """
        self._settle()
        with closing(self._groups()) as frames:
            yield from frames
        self._memory.resize(0)

    def release_memory(self) -> None:
        """Put what is held into files, so that others have its memory, where that is possible.

        Raises:
            StorageError: the folder has no room for it.
        """
        if self._merged or self._pending:
            self._spill()

    def close(self) -> None:
        """Let go of files."""
        if self._partitions is not None:
            self._partitions.close()

    def _settle(self) -> None:
        """No more states will come: what there is goes to where it is finished."""
        if self._partitions is None:
            self._merge()
            if self._memory.fits(self._needed_bytes()):
                return
        self._spill()

    def _groups(self) -> Generator[Frame, None, None]:
        finished = (
            ordered_map(self._context, self._aggregation.final, drain_list(self._merged), looks_ahead=True)
            if self._partitions is None
            else self._finish_partitions(self._partitions)
        )
        with closing(finished) as frames:
            yield from frames

    def _finish_partitions(self, partitions: StatePartitions[Frame]) -> Generator[Frame, None, None]:
        with closing(partitions.finish(self._memory)) as frames:
            yield from frames
        for states in partitions.oversized_states():
            with closing(states):
                below = type(self)(
                    self._context, self._aggregation, self._memory, self._profile, self._level + 1
                )
                with closing(below):
                    for state in states:
                        below.add(state)
                    with closing(below.frames()) as frames:
                        yield from frames

    def _make_room(self) -> None:
        """Merge what waits, or put what is held into files, where it is time to."""
        patience = _PATIENCE if self._has_many_threads else 1
        waiting = patience * _PENDING_GROUPS * self._context.device.task_size
        enough = max(waiting, self._merged_groups) if self._merges else _SPILLED_GROUPS
        large = self._pending_bytes >= max(self._split_bytes, self._merged_bytes)
        many = self._pending_groups >= enough or len(self._pending) >= _PENDING_STATES
        many = many or (large and self._merges)
        if many and self._merges:
            self._merge()
        if self._memory.fits(self._needed_bytes()) and (self._merges or not many):
            return
        if self._merges:
            self._merge()
        if 2 * self._needed_bytes() > self._memory.room or not self._merges:
            self._spill()
        else:
            self._memory.resize(self._needed_bytes())

    def _spill(self) -> None:
        """What is held goes to files, and nothing is held any more.

        Raises:
            MemoryLimitError: there is nowhere to put it, or it would not get less: it is of one group.
        """
        context = self._context
        groups = self._merged_groups + self._pending_groups
        if self._partitions is None:
            if context.spill_folder is None or groups < 2 or self._level == MOST_LEVELS:
                self._memory.resize(self._needed_bytes())
                return
            self._partitions = StatePartitions(context, self._aggregation, self._profile, self._level + 1)
            self._merges = groups < _FEW_REPEATED * self._taken_groups
        self._profile.details["peak_memory"] = self._memory.peak
        self._partitions.add(drain_list(self._take_all()))
        self._memory.resize(0)
        release_unused_memory()

    def _take_all(self) -> list[GroupState]:
        """All that was held, in the rows' order."""
        states = [*self._merged, *self._pending]
        self._merged.clear()
        self._pending.clear()
        self._merged_groups = self._merged_bytes = self._pending_groups = self._pending_bytes = 0
        self._is_spliced = False
        return states

    def _merge(self) -> None:
        if self._settle_at_once() or self._splice():
            return
        size = self._context.device.task_size
        held = self._merged_bytes + self._pending_bytes
        large = (held > self._split_bytes or self._are_spread) and self._worth_places > 1
        if len(self._merged) > 1 or (large and self._aggregation.keys):
            self._merge_places()
        elif self._pending:
            state = self._merged_state([*self._merged, *self._pending])
            self._merged.clear()
            self._pending.clear()  # what it was made of is gone before it is split
            if state.groups > _SPLIT_GROUPS * size:
                self._merged.extend(
                    self._aggregation.split(state, self._first_places, _MEMORY_LEVEL, apart=True)
                )
            else:
                self._merged.append(state)
        self._pending_groups = self._pending_bytes = 0
        self._merged_groups = sum(state.groups for state in self._merged)
        self._merged_bytes = sum(state.nbytes for state in self._merged)

    def _settle_at_once(self) -> bool:
        """Where all groups are one state, and a GPU has them: taking it apart would only cost copies."""
        if self._merged or len(self._pending) != 1 or self._repeated:
            return False
        if self._context.device.capabilities.on_host:
            return False
        self._merged_groups, self._merged_bytes = self._pending_groups, self._pending_bytes
        self._merged.extend(drain_list(self._pending))
        self._pending_groups = self._pending_bytes = 0
        return True

    def _splice(self) -> bool:
        """Where groups are many and few states have the same ones, put these together and leave others apart.

        So it is where rows come nearly in the order of a key: nothing else need be looked up or copied.
        """
        many = self._merged_groups + self._pending_groups > _SPLIT_GROUPS * self._context.device.task_size
        hashed = len(self._merged) > 1 and not self._is_spliced
        if not many or hashed or self._repeated or not isinstance(self._aggregation, SplicingAggregation):
            return False
        if not self._pending:
            return self._is_spliced
        states = [*self._merged, *self._pending]
        spread = partial(ordered_map, self._context, looks_ahead=True)
        spliced = self._aggregation.splice([state for state in states if state.groups], spread)
        self._is_spliced = spliced is not None
        if spliced is None:
            self._pending[:0] = drain_list(self._merged)
            return False
        self._take_all()
        self._merged.extend(spliced)
        self._is_spliced = True
        self._merged_groups = sum(state.groups for state in self._merged)
        self._merged_bytes = sum(state.nbytes for state in self._merged)
        return True

    @property
    def _has_many_threads(self) -> bool:
        return self._context.threads >= _MANY_THREADS and self._context.device.capabilities.on_host

    @property
    def _are_spread(self) -> bool:
        """Whether groups that wait are too many for one thread, and hardly the same ones in each state."""
        many = self._pending_groups > _SPLIT_GROUPS and self._has_many_threads
        return many and self._pending_groups >= _SPREAD_STATE * len(self._pending)

    @property
    def _first_places(self) -> int:
        return max(_PLACES // self._context.device.task_size, _LEAST_PLACES)

    @property
    def _worth_places(self) -> int:
        """Places that what is held fills: as many as there are at first, half of them, and so on; or one."""
        held = self._merged_bytes + self._pending_bytes
        groups = self._merged_groups + self._pending_groups
        if self._has_many_threads:
            few = min(2 * groups // _SPREAD_GROUPS, _SPREAD_PLACES)
            filled = max(groups // _SPREAD_GROUPS, few, held // _SPREAD_BYTES)
        else:
            filled = max(groups // _PLACE_GROUPS, held // _PLACE_BYTES)
        count = self._first_places
        while count > filled:
            count //= 2
        return count if count >= min(_FEWEST_PLACES, self._first_places) else 1

    def _merge_places(self) -> None:
        count = max(len(self._merged), self._worth_places)
        large = PLACE_GROUPS * self._context.device.task_size * count
        if count == self._first_places and self._merged_groups + self._pending_groups > large:
            count *= _MORE_PLACES

        def split(state: GroupState) -> Sequence[GroupState]:
            return self._aggregation.split(state, count, _MEMORY_LEVEL, apart=True)

        places: list[list[GroupState]] = [[] for _ in range(count)]
        if count == len(self._merged):
            places = [[state] for state in drain_list(self._merged)]
        else:
            self._pending[:0] = drain_list(self._merged)
        with closing(
            ordered_map(self._context, split, drain_list(self._pending), looks_ahead=True)
        ) as pieces:
            for piece in pieces:
                for place, state in zip(places, piece, strict=True):
                    if state.groups or not place:
                        place.append(state)
        with closing(
            ordered_map(self._context, self._merged_state, drain_list(places), looks_ahead=True)
        ) as merged:
            self._merged.extend(merged)

    def _merged_state(self, states: Sequence[GroupState]) -> GroupState:
        state: GroupState = self._aggregation.merge(states, repeated=self._repeated)
        return state

    def _needed_bytes(self) -> int:
        """What is held and allocators keep beside it, and what is being merged: a place for each thread."""
        held = self._merged_bytes + self._pending_bytes
        places = len(self._merged)
        if places <= 1 or self._is_spliced:
            return 2 * held
        merging = held * min(self._context.threads + 1, places) // places
        return held + held // _UNUSED + _MERGING * merging


def group_rows(
    context: ExecutionContext[Frame],
    rows: Iterable[Frame],
    nothing: Frame,
    aggregation: Aggregation[Frame, Any],
    *,
    memory: Reservation,
    profile: OperatorProfile,
    kind: type[GroupStates[Frame]] | None = None,
) -> Generator[Frame, None, None]:
    """The groups of rows, whose columns are those of `nothing`, a frame without rows.

    `kind`: what holds their states; None: `GroupStates`.
    """
    with closing((kind or GroupStates)(context, aggregation, memory, profile)) as states:
        empty = True
        with (
            closing(gather_frames(context, rows)) as chunks,
            closing(map_chunks_split_on_out_of_memory(context, aggregation.partial, chunks)) as partials,
        ):
            for state in partials:
                states.add(state)
                empty = False
        if empty:
            states.add(aggregation.partial(nothing))
        with closing(states.frames()) as frames:
            yield from frames
