"""The states of a GROUP BY with aggregates that need all values of a group at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any, Final

from bamquery.engine.device import Aggregation, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation, release_unused_memory
from bamquery.engine.operators.aggregate.counted_values import CountedValues, calls_of_value_counts
from bamquery.engine.operators.aggregate.group_states import GroupStates
from bamquery.engine.operators.aggregate.state_partitions import MOST_LEVELS
from bamquery.engine.operators.base.frame_sizing import drain_list
from bamquery.engine.profiling.operator_profile import OperatorProfile

_LONG: Final = 1024
"""Bytes of a group of a chunk from which on nothing is saved by merging states, and little by splitting."""


class HolisticStates(GroupStates[Frame]):
    """As `GroupStates`; where the values of few groups are what does not fit, values are counted instead.

    Groups of many rows take the same memory, however they are merged, and a file of one group is no smaller
    than the group. So each different value is kept once, with how often it comes: see `CountedValues`.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        aggregation: Aggregation[Frame, Any],
        memory: Reservation,
        profile: OperatorProfile,
        level: int = 0,
    ) -> None:
        super().__init__(context, aggregation, memory, profile, level)
        self._counted = calls_of_value_counts(aggregation.calls) if context.spill_folder is not None else ()
        self._values: CountedValues[Frame] | None = None

    def close(self) -> None:
        """Let go of files."""
        if self._values is not None:
            self._values.close()
        super().close()

    def _settle(self) -> None:
        if self._values is None:
            super()._settle()
        else:
            self._spill()

    def _groups(self) -> Generator[Frame, None, None]:
        if self._values is None:
            with closing(super()._groups()) as frames:
                yield from frames
            return
        with closing(self._values.frames()) as frames:
            yield from frames
        self._values.close()  # which holds nothing then

    def _make_room(self) -> None:
        if self._values is not None:
            if len(self._pending) > self._context.threads:  # one for each of them to work on
                self._spill()
        elif self._partitions is not None or not self._counted or not self._are_long():
            super()._make_room()
        elif not self._memory.fits(self._needed_bytes()):
            self._spill()

    def _spill(self) -> None:
        if self._values is None and self._partitions is None and self._counted and self._are_few():
            self._memory.resize(0)
            self._values = CountedValues(
                self._context, self._aggregation, self._memory, self._profile, self._level
            )
        if self._values is None:
            super()._spill()
            return
        self._values.add(drain_list(self._take_all()))
        release_unused_memory()

    def _are_few(self) -> bool:
        """Whether files by keys would not be much smaller than what is held, or could not be made."""
        groups = self._merged_groups + self._pending_groups
        return groups < 2 or self._level == MOST_LEVELS or self._are_long()

    def _are_long(self) -> bool:
        groups = self._merged_groups + self._pending_groups
        return self._merged_bytes + self._pending_bytes >= _LONG * groups
