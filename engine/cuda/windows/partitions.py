"""Rows in order as partitions, and as groups of peers within them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import pylibcudf as plc

from bamquery.engine.cuda.comparisons import is_distinct_from
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.device import RestOfPartition


class Partitions:
    """Positions for each of at least one row; ends are exclusive.

    Where the rows are some of one partition, what begins before them is below zero, and what ends behind
    them beyond their number.

    Attributes:
        rows: how many rows there are.
        starts: first row of each partition, ascending.
        peer_starts: first row of each group of peers, ascending.
        rest: what is not among the rows.
    """

    def __init__(self, kernels: Kernels, begins: Mask, differs: Mask, rest: RestOfPartition) -> None:
        self.kernels: Final = kernels
        self.rows: Final = begins.column.size()
        self.starts: Final = begins.places()
        self.peer_starts: Final = differs.places()
        self._begins = begins
        self._differs = differs
        self.rest: Final = rest

    @property
    def reach(self) -> int:
        """Rows, with those of the partition that are not here."""
        return self.rows + self.rest.rows_before + self.rest.rows_after

    @cached_property
    def own(self) -> Vector:
        """Each row's own position."""
        return Vector.positions(self.kernels, self.rows)

    @cached_property
    def number(self) -> Vector:
        """Of each row's partition."""
        return _numbers(self._begins)

    @cached_property
    def ends(self) -> Vector:
        """End of each partition, among the rows."""
        return self._ends(self.starts)

    @cached_property
    def start(self) -> Vector:
        """First row of each row's partition."""
        return self.starts.take(self.number) - self.rest.rows_before

    @cached_property
    def end(self) -> Vector:
        """End of each row's partition."""
        return self.ends.take(self.number) + self.rest.rows_after

    @cached_property
    def first_group(self) -> Vector:
        """Number of the first group of peers in each row's partition."""
        return self.peers.take(self.starts).take(self.number)

    @cached_property
    def last_group(self) -> Vector:
        """Number of the last one."""
        return self.peers.take(self.ends - 1).take(self.number)

    @cached_property
    def peers(self) -> Vector:
        """Number of each row's group of peers, through all partitions."""
        return _numbers(self._differs)

    @cached_property
    def peer_begins(self) -> Vector:
        """First row of each group of peers."""
        first = Vector.full(self.kernels, -self.rest.peers_before, 1)
        return self.peer_starts.slice(1, len(self.peer_starts)).prepend(first)

    @cached_property
    def peer_ends(self) -> Vector:
        """End of each group of peers."""
        return self._ends(self.peer_starts, self.rest.peers_after)

    @cached_property
    def peer_start(self) -> Vector:
        """First peer of each row."""
        return self.peer_begins.take(self.peers)

    @cached_property
    def peer_end(self) -> Vector:
        """End of each row's peers."""
        return self.peer_ends.take(self.peers)

    def _ends(self, starts: Vector, more: int = 0) -> Vector:
        last = Vector.full(self.kernels, self.rows + more, 1)
        return last.prepend(starts.slice(1, len(starts)))


def find_partitions(
    kernels: Kernels,
    partition: Sequence[Operand],
    order: Sequence[Operand],
    rows: int,
    rest: RestOfPartition | None = None,
) -> Partitions:
    """Partitions and peers of rows that are in order of both, by the columns' values."""
    begins = changes(kernels, partition, rows)
    differs = begins | changes(kernels, order, rows) if order else begins
    found = Partitions(kernels, begins, differs, rest or RestOfPartition())
    assert rest is None or len(found.starts) == 1, "rows of several partitions have no rest"
    return found


def changes(kernels: Kernels, columns: Sequence[Operand], rows: int) -> Mask:
    """Whether each of at least one row differs from the one before; the first does."""
    first = kernels.repeat_scalar(kernels.truth(True), 1)
    if rows == 1:
        return Mask(kernels, first)
    found = Mask.full(kernels, False, rows - 1)
    for operand in columns:
        column = operand.datum
        assert isinstance(column, plc.Column)
        sides = (kernels.slice_column(column, 0, rows - 1), kernels.slice_column(column, 1, rows))
        before, here = (Operand(operand.kind, side) for side in sides)
        found |= Mask(kernels, is_distinct_from(kernels, before, here))
    return Mask(kernels, kernels.concatenate([first, found.column]))


def _numbers(begins: Mask) -> Vector:
    """How many begin up to each row, that of the first left out."""
    totals = begins.numbers().totals()
    return totals.slice(1, len(totals)) - 1
