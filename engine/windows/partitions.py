"""Rows in order as partitions, and as groups of peers within them."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Generic

from bamquery.engine.device import RestOfPartition
from bamquery.engine.windows.vectors import Mask, V, Vectors


class Partitions(Generic[V]):
    """Positions for each of at least one row; ends are exclusive.

    Where the rows are some of one partition, what begins before them is below zero, and what ends behind
    them beyond their number.

    Args:
        begins: where a partition begins.
        differs: where a group of peers does.
        rest: what is not among the rows.

    Attributes:
        rows: how many rows there are.
        starts: first row of each partition, ascending.
        peer_starts: first row of each group of peers, ascending.
    """

    def __init__(
        self, vectors: Vectors[V], begins: Mask[V], differs: Mask[V], rest: RestOfPartition | None
    ) -> None:
        self.vectors: Final = vectors
        self.rows: Final = len(begins)
        self.starts: Final = begins.places()
        self.peer_starts: Final = differs.places()
        self._begins = begins
        self._differs = differs
        assert rest is None or len(self.starts) == 1, "rows of several partitions have no rest"
        self.rest: Final = rest or RestOfPartition()

    @property
    def reach(self) -> int:
        """Rows, with those of the partition that are not here."""
        return self.rows + self.rest.rows_before + self.rest.rows_after

    @property
    def own(self) -> V:
        """Each row's own position, sooner made than kept."""
        return self.vectors.positions(self.rows)

    @cached_property
    def number(self) -> V:
        """Of each row's partition."""
        return running_numbers(self._begins)

    @cached_property
    def ends(self) -> V:
        """End of each partition, among the rows."""
        return self._ends(self.starts)

    @cached_property
    def start(self) -> V:
        """First row of each row's partition."""
        return (self.starts - self.rest.rows_before).take(self.number)

    @cached_property
    def end(self) -> V:
        """End of each row's partition."""
        return (self.ends + self.rest.rows_after).take(self.number)

    @cached_property
    def first_group(self) -> V:
        """Number of the first group of peers in each row's partition."""
        return self.peers.take(self.starts).take(self.number)

    @cached_property
    def last_group(self) -> V:
        """Number of the last one."""
        return self.peers.take(self.ends - 1).take(self.number)

    @cached_property
    def peers(self) -> V:
        """Number of each row's group of peers, through all partitions."""
        return running_numbers(self._differs)

    @cached_property
    def peer_begins(self) -> V:
        """First row of each group of peers."""
        first = self.vectors.full(-self.rest.peers_before, 1)
        return self.vectors.concatenate([first, self.peer_starts.slice(1, len(self.peer_starts))])

    @cached_property
    def peer_ends(self) -> V:
        """End of each group of peers."""
        return self._ends(self.peer_starts, self.rest.peers_after)

    @cached_property
    def peer_start(self) -> V:
        """First peer of each row."""
        return self.peer_begins.take(self.peers)

    @cached_property
    def peer_end(self) -> V:
        """End of each row's peers."""
        return self.peer_ends.take(self.peers)

    def _ends(self, starts: V, more: int = 0) -> V:
        last = self.vectors.full(self.rows + more, 1)
        return self.vectors.concatenate([starts.slice(1, len(starts)), last])


def running_numbers(begins: Mask[V]) -> V:
    """How many begin up to each row, that of the first left out."""
    totals = begins.totals()
    return totals.slice(1, len(totals)) - 1
