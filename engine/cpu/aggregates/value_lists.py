"""Aggregates that need all their values at once: each group's are kept in a list."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    count_by_group,
    drop_nulls,
)
from bamquery.engine.cpu.frames import make_batch
from bamquery.engine.cpu.kernels import Column, compute, from_values, stored_values, take
from bamquery.engine.cpu.keys.sorting import sorted_positions
from bamquery.engine.cpu.keys.stable_order import stable_order
from bamquery.plan.expressions import ColumnRef, SortKey


class HolisticAggregate(Accumulator):
    """Lists of values that are not null, in the rows' order; memory follows the rows."""

    state: str | None = "lists"

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """One list a group."""
        column, codes = self._select_rows(column, codes)
        counts = count_by_group(codes, groups)
        if groups == 1:
            return (make_lists(column, counts),)
        return (make_lists(take(column, stable_order(codes, groups)), counts),)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The lists, joined in the states' order."""
        (lists,) = state
        assert isinstance(lists, pa.Array)
        # In order already where there is one group, or each state has others: their values stay in place.
        apart = bool((codes[1:] >= codes[:-1]).all())
        joined = lists if apart else take(lists, stable_order(codes, groups))
        lengths = np.zeros(groups, np.int64)
        np.add.at(lengths, codes, stored_values(compute("list_value_length", lists)))
        return (make_lists(flatten_lists(joined), lengths),)

    def final(self, state: StateColumns) -> Column:
        """The answer from each group's values."""
        (lists,) = state
        assert isinstance(lists, pa.Array)
        counts = stored_values(compute("list_value_length", lists))
        return self.answer(flatten_lists(lists), counts)

    @abstractmethod
    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """The aggregate of each group: of the first `counts[0]` values, of the next `counts[1]`, ..."""

    def _select_rows(self, column: Column, codes: Codes) -> tuple[Column, Codes]:
        """The rows that are kept."""
        return drop_nulls(column, codes)


class OrderedAggregate(HolisticAggregate):
    """Another aggregate over the rows in an order of their own.

    Args:
        inner: the aggregate.
        arguments: how many fields of the rows it takes; a row's other fields are the sort keys.
        keys: directions of the sort keys; their expressions are not looked at.
    """

    state = None

    def __init__(self, inner: Accumulator, arguments: int, keys: Sequence[SortKey]) -> None:
        self._inner = inner
        self._arguments = arguments
        self._keys = tuple(keys)

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """The inner aggregate of the sorted rows."""
        codes = group_codes(counts)
        fields = cast("pa.StructArray", values).flatten()
        keys = [
            SortKey(ColumnRef(1 + i, "", fields[self._arguments + i].type), key.descending, key.nulls_first)
            for i, key in enumerate(self._keys)
        ]
        positions = sort_within_groups(codes, fields[self._arguments :], keys)
        rows = pack_struct([take(field, positions) for field in fields[: self._arguments]])
        return self._inner.final(self._inner.partial(rows, codes, len(counts)))

    def _select_rows(self, column: Column, codes: Codes) -> tuple[Column, Codes]:
        return column, codes


def pack_struct(columns: Sequence[Column]) -> Column:
    """Several columns as one; a single one stays itself."""
    if len(columns) == 1:
        return columns[0]
    names = [str(i) for i in range(len(columns))]
    return pa.StructArray.from_arrays(list(columns), names=names)


def group_codes(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Group numbers of rows that lie group by group."""
    return np.repeat(np.arange(len(counts)), counts)


def sort_within_groups(codes: Codes, columns: Sequence[Column], keys: Sequence[SortKey]) -> Column:
    """Positions of the rows by group, then by keys; these refer to `columns` from 1 on."""
    batch = make_batch([from_values(np.asarray(codes, np.int64), pa.int64()), *columns], len(codes))
    first = SortKey(ColumnRef(0, "group", pa.int64()))
    return sorted_positions(batch, [first, *keys], None)


def make_lists(values: Column, counts: NDArray[np.int64]) -> Column:
    """Values that lie group by group as a list for each group."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets: Any = from_values(ends, pa.int64())
    return pa.LargeListArray.from_arrays(offsets, values)


def flatten_lists(lists: Column) -> Column:
    """The values of all lists, one after the other."""
    return cast("pa.LargeListArray[Any]", lists).flatten()


def owning_lists(lists: Column, start: int, length: int) -> NDArray[np.int64]:
    """Which list each of some values is in, from number `start` on."""
    ends = np.cumsum(stored_values(compute("list_value_length", lists)))
    return np.searchsorted(ends, np.arange(start, start + length), side="right").astype(np.int64)
