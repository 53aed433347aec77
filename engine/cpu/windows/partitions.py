"""Rows in order as partitions, and as groups of peers within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, boolean_values, compute, stored_values, valid_rows
from bamquery.engine.cpu.keys.grouping import canonical, group_rows
from bamquery.engine.device import RestOfPartition
from bamquery.statement_context.cancellation import check_cancelled

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Partitions:
    """Positions for each row; ends are exclusive.

    Where the rows are some of one partition, what begins before them is below zero, and what ends behind
    them beyond their number.

    Attributes:
        rows: how many rows there are.
        starts: first row of each partition, ascending.
        peer_starts: first row of each group of peers, ascending.
        rest: what is not among the rows.
    """

    rows: int
    starts: Positions
    peer_starts: Positions
    rest: RestOfPartition

    @property
    def reach(self) -> int:
        """Rows, with those of the partition that are not here."""
        return self.rows + self.rest.rows_before + self.rest.rows_after

    @cached_property
    def number(self) -> Positions:
        """Of each row's partition."""
        return _numbers(self.starts, self.rows)

    @cached_property
    def start(self) -> Positions:
        """First row of each row's partition."""
        check_cancelled()
        return self.starts[self.number] - self.rest.rows_before

    @cached_property
    def end(self) -> Positions:
        """End of each row's partition."""
        return _ends(self.starts, self.rows)[self.number] + self.rest.rows_after

    @cached_property
    def first_group(self) -> Positions:
        """Number of the first group of peers in each row's partition."""
        return self.peers[self.starts][self.number]

    @cached_property
    def last_group(self) -> Positions:
        """Number of the last one."""
        return self.peers[_ends(self.starts, self.rows) - 1][self.number]

    @cached_property
    def peers(self) -> Positions:
        """Number of each row's group of peers, through all partitions."""
        return _numbers(self.peer_starts, self.rows)

    @cached_property
    def peer_begins(self) -> Positions:
        """First row of each group of peers."""
        begins = self.peer_starts.copy()
        begins[:1] -= self.rest.peers_before
        return begins

    @cached_property
    def peer_ends(self) -> Positions:
        """End of each group of peers."""
        ends = _ends(self.peer_starts, self.rows)
        ends[-1:] += self.rest.peers_after
        return ends

    @cached_property
    def peer_start(self) -> Positions:
        """First peer of each row."""
        check_cancelled()
        return self.peer_begins[self.peers]

    @cached_property
    def peer_end(self) -> Positions:
        """End of each row's peers."""
        check_cancelled()
        return self.peer_ends[self.peers]


def find_partitions(
    partition: Sequence[Column], order: Sequence[Column], rows: int, rest: RestOfPartition | None = None
) -> Partitions:
    """Partitions and peers of rows that are in order of both, by the columns' values."""
    begins = _changes(partition, rows)
    differs = begins | _changes(order, rows)
    starts = np.flatnonzero(begins)
    assert rest is None or len(starts) == 1, "rows of several partitions have no rest"
    return Partitions(rows, starts, np.flatnonzero(differs), rest or RestOfPartition())


def _changes(columns: Sequence[Column], rows: int) -> NDArray[np.bool_]:
    """Whether each row differs from the one before; the first does."""
    changes = np.zeros(rows, np.bool_)
    changes[:1] = True
    for column in columns:
        check_cancelled()
        changes[1:] |= _changes_of(column)
    return changes


def _changes_of(column: Column) -> NDArray[np.bool_]:
    """Whether each value but the first is another one than the value before: nulls are equal, and NaNs."""
    kind = column.type
    differ: NDArray[np.bool_]
    if pa.types.is_floating(kind):
        bits = stored_values(canonical(column)).view(f"u{kind.bit_width // 8}")
        differ = bits[1:] != bits[:-1]
    elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        values = stored_values(column)
        differ = values[1:] != values[:-1]
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        differ = boolean_values(
            compute("not_equal", column.slice(1), column.slice(0, max(len(column) - 1, 0)))
        )
    else:  # dictionaries among them: their places are few
        codes = group_rows([column], len(column)).codes
        differ = codes[1:] != codes[:-1]
        return differ
    present = valid_rows(column)
    if present is not None:
        there = boolean_values(present)
        differ = np.where(there[1:] & there[:-1], differ, there[1:] != there[:-1])
    return differ


def _numbers(starts: Positions, rows: int) -> Positions:
    check_cancelled()  # all of these take a while where a partition has millions of rows
    marks = np.zeros(rows, np.int64)
    marks[starts] = 1
    numbers: Positions = np.cumsum(marks) - 1
    return numbers


def _ends(starts: Positions, rows: int) -> Positions:
    check_cancelled()
    return np.append(starts[1:], rows)
