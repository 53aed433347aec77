"""Aggregates in the making in partitions by their keys, each in a file."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final, Generic

from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.execution.spill_files import StateFile
from bamquery.engine.operators.base.frame_sizing import drain_list
from bamquery.engine.profiling.operator_profile import OperatorProfile

MOST_LEVELS: Final = 5
"""Times that a partition is split again: more than any number of groups needs."""
_PARTITIONS: Final = 64
_COPIES: Final = 3
"""Times that a partition's states are in memory while they are merged and become an answer."""
PLACE_GROUPS: Final = 1 << 16
"""Groups that are best merged at once: tables of many more are larger than what is close to processors."""
_MOST_PLACES: Final = 64
"""Of a partition's groups: files are no larger than memory."""


class StatePartitions(Generic[Frame]):
    """States by the hash of their keys: equal keys are in the same partition, in the rows' order."""

    def __init__(
        self,
        context: ExecutionContext[Frame],
        aggregation: Aggregation[Frame, Any],
        profile: OperatorProfile,
        level: int,
    ) -> None:
        """`level`: how often what comes in was split before, and one more."""
        assert context.spill_folder is not None
        self._context = context
        self._aggregation = aggregation
        self._level = level
        self._files = [StateFile(aggregation, context.spill_folder, profile) for _ in range(_PARTITIONS)]
        self._large: list[StateFile] = []
        profile.details["partitions"] = profile.details.get("partitions", 0) + _PARTITIONS

    def add(self, states: Iterable[GroupState]) -> None:
        """Take states, in the rows' order.

        Raises:
            StorageError: the database's folder has no room for them.
        """

        def split(state: GroupState) -> Sequence[GroupState]:
            return self._aggregation.split(state, _PARTITIONS, self._level)

        places: list[list[GroupState]] = [[] for _ in self._files]
        with closing(ordered_map(self._context, split, states)) as pieces:
            for partitions in pieces:
                for place, partition in zip(places, partitions, strict=True):
                    place.append(partition)
        for file, place in zip(self._files, drain_list(places), strict=True):
            self._context.check_cancelled()
            file.write(place)

    def finish(self, memory: Reservation) -> Generator[Frame, None, None]:
        """The groups of all partitions that fit in memory, several at once; others are `oversized_states`.

        Raises:
            ExecutionError: see `Aggregation.merge` and `Aggregation.final`.
        """
        fitting = memory.room // (_COPIES * (self._context.threads + 1))
        small = [file for file in self._files if file.bytes <= fitting]
        self._large = [file for file in self._files if file.bytes > fitting]
        largest = max((file.bytes for file in small), default=0)
        memory.resize(_COPIES * largest * (self._context.threads + 1))

        with closing(ordered_map(self._context, self._finish, small)) as partitions:
            for frames in partitions:
                yield from drain_list(frames)
        memory.resize(0)

    def _finish(self, file: StateFile) -> list[Frame]:
        groups = PLACE_GROUPS * self._context.device.task_size
        count = 1
        while count < _MOST_PLACES and count * groups < file.rows:
            count *= 2
        places: list[list[GroupState]] = [[] for _ in range(count)]
        with file:
            for state in file.states():
                pieces = [state] if count == 1 else self._aggregation.split(state, count, self._level + 1)
                for place, piece in zip(places, pieces, strict=True):
                    place.append(piece)
        frames = []
        for place in drain_list(places):
            self._context.check_cancelled()
            if not any(state.groups for state in place):
                continue
            frames.append(self._aggregation.final(self._aggregation.merge(place, repeated=True)))
        return frames

    def oversized_states(self) -> Iterator[Generator[GroupState, None, None]]:
        """The states of each partition that does not fit in memory; its file is gone afterwards."""
        for file in self._large:
            yield self._read_states(file)

    def close(self) -> None:
        """Let go of all files."""
        for file in self._files:
            file.close()

    @staticmethod
    def _read_states(file: StateFile) -> Generator[GroupState, None, None]:
        with file:
            yield from file.states()
