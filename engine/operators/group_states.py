"""The states of a GROUP BY while its rows come in."""

from __future__ import annotations

from typing import Any, Final, Generic

from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.memory import Reservation
from bamquery.errors import MemoryLimitError

_PENDING_ENTRIES: Final = 1 << 18
"""Groups that wait unmerged at least: merging costs a pass over all that is held."""
_PENDING_STATES: Final = 256
"""States of few groups that wait at most."""
_PENDING_SHARE: Final = 2
"""Pending groups for each merged one, so that a group is merged a bounded number of times."""


class GroupStates(Generic[Frame]):
    """One merged state and younger ones that wait, merged once they outweigh it.

    Every group of every chunk may be new, so waiting states are bounded by a multiple of the merged one:
    memory stays proportional to the distinct keys, and the work to the rows.
    """

    def __init__(self, aggregation: Aggregation[Frame, Any], memory: Reservation) -> None:
        self._aggregation = aggregation
        self._memory = memory
        self._states: list[GroupState] = []  # the first is the merged one, in the rows' order
        self._pending_entries = 0
        self._nbytes = 0

    def add(self, state: GroupState) -> None:
        """Take the state of the next rows.

        Raises:
            MemoryLimitError: even merged, the states need more than the limit.
            ExecutionError: see `Aggregation.merge`.
        """
        self._states.append(state)
        self._pending_entries += state.entries
        self._nbytes += state.nbytes
        enough = max(_PENDING_ENTRIES, _PENDING_SHARE * self._states[0].entries)
        if self._pending_entries >= enough or len(self._states) > _PENDING_STATES:
            self.merged()
            return
        try:
            self._reserve()
        except MemoryLimitError:
            if len(self._states) == 1:
                raise
            self.merged()

    def merged(self) -> GroupState:
        """All rows' state.

        Raises:
            MemoryLimitError: merging needs more than the limit.
            ExecutionError: see `Aggregation.merge`.
        """
        if len(self._states) > 1:
            self._states = [self._aggregation.merge(self._states)]
        self._pending_entries = 0
        self._nbytes = self._states[0].nbytes
        self._reserve()
        return self._states[0]

    def _reserve(self) -> None:
        """Twice what is held: merging makes a copy."""
        self._memory.resize(2 * self._nbytes)
